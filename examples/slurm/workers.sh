#!/bin/bash
# Eight workers in one allocation, until nothing of the batch job is left or the time is over:
#   rowcall enqueue config.toml        # with [store] path = "postgresql://user@host/database"
#   ROWCALL_STORE=postgresql://user@host/database sbatch workers.sh
# Run it again for what is left. Keys come from the environment, as the config says.
#SBATCH --job-name=rowcall
#SBATCH --ntasks=8
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@60
# 60 s before the end, each worker lets its calls end and gives the rest back.

srun rowcall work --no-progress
