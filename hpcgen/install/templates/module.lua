-- A modulefile in Lua for Lmod, which reads none in Tcl whose path has a space in it, in parts.
#: top
-- Written by hpcgen install; hpcgen uninstall @{name} removes it.
help(@{help})
whatis(@{title})
conflict(@{quoted_name})
prepend_path("PATH", @{programs})
#: kernels
prepend_path("JUPYTER_PATH", @{kernels})
