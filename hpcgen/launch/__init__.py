"""From a plan to a running job: container engines × batch systems; ``script`` puts them together."""
