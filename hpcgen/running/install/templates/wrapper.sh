#!/bin/sh
# @{command} in the image of @{name}. Written by hpcgen install; hpcgen uninstall @{name} removes it.
exec @{start} @{program} "$@"
