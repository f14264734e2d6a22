"""The operating system: files replaced atomically, threads, the limit of open files, sets on disk."""
