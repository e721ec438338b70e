"""Release tables kept true: what is newer, differs, vanished or aged, by the package index, Spack and EasyBuild."""
