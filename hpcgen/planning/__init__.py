"""A site, a stack and a request → a plan: versions, job, contract, findings; and what a plan rests on."""
