"""What the operating system gives: files that are replaced whole, threads, open files, sets on disk."""
