"""What machines are: CPU targets, fabrics, MPI families, mirrors."""
