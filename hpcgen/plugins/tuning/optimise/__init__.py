"""From a request to a plan, by what is measured: candidates, estimates, layouts, the decision, the report."""
