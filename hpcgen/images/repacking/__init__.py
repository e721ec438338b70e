"""A squashfs written again with the compressed blocks of an older one, where a file is as it was."""
