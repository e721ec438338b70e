-- A modulefile in Lua for Lmod, which reads none in Tcl whose path has a space in it, in parts.
#: top
-- Written by hpcgen install; hpcgen uninstall @{name} removes it.
help(@{help})
whatis(@{title})
conflict(@{quoted_name})
prepend_path("PATH", @{programs})
#: completions
-- Where nothing is set, the default goes on to hold; XDG Base Directory Specification.
if (os.getenv("XDG_DATA_DIRS") or "") == "" then
    append_path("XDG_DATA_DIRS", "/usr/local/share:/usr/share")
end
prepend_path("XDG_DATA_DIRS", @{share})
#: kernels
prepend_path("JUPYTER_PATH", @{kernels})
