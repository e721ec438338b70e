"""An image as commands of the host: below a prefix, with what is needed to take all of it away again."""
