#!/bin/bash
# Runs eight workers in one allocation, until the batch job is finished or the time is up:
#   rowcall enqueue config.toml        # with [store] path = "postgresql://user@host/database"
#   ROWCALL_STORE=postgresql://user@host/database sbatch workers.sh
# Submit it again for what is left. API keys come from the environment; ROWCALL_ENV="OPENAI_API_KEY" names those that the
# config in the store may use. If that config has a handler or a command: ROWCALL_TRUST_STORE=1.
#SBATCH --job-name=rowcall
#SBATCH --ntasks=8
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@60
# On SIGTERM, 60 s before the end, each worker finishes its calls in flight and releases the other records.

srun rowcall work --no-progress
