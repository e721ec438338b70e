"""A plan → job script, environment and preflight: container engines × batch systems."""
