"""What a job asks for: nodes, ranks, threads, time, queue."""
