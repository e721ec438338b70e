# A modulefile in Tcl, which Environment Modules and Lmod read, in parts.
#: top
#%Module1.0
# Written by hpcgen install; hpcgen uninstall @{name} removes it.
proc ModulesHelp { } {
    puts stderr @{help}
}
module-whatis @{title}
conflict @{name}
prepend-path PATH @{programs}
#: completions
# Where nothing is set, the default goes on to hold; XDG Base Directory Specification.
if {![info exists env(XDG_DATA_DIRS)] || $env(XDG_DATA_DIRS) eq ""} {
    append-path XDG_DATA_DIRS /usr/local/share:/usr/share
}
prepend-path XDG_DATA_DIRS @{share}
#: kernels
prepend-path JUPYTER_PATH @{kernels}
