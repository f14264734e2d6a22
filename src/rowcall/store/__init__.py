"""Where jobs, requests and answers are kept."""
