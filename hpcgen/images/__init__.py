"""Images that are there already: named, read without being started, shown, converted."""
