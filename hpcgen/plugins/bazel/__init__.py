"""What Bazel fetches for a build, learned by running it."""
