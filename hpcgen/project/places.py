"""Where the image has the project."""

APP = "/app"
