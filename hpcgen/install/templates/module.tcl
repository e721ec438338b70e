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
#: kernels
prepend-path JUPYTER_PATH @{kernels}
