! Every rank writes its row of one HDF5 file with all others, and reads that of the next rank.
program hdf5_fortran
  use mpi_ranks
  use hdf5
  implicit none
  integer, parameter :: columns = 1000
  integer :: row(columns), i, other
  integer(hsize_t) :: rows(2), part(2), start(2)
  integer(hid_t) :: access, transfer, file, memory, space, set
  character(:), allocatable :: path

  call begin()
  path = file_in('hdf5_fortran.h5')
  call h5open_f(ierr)
  rows = [integer(hsize_t) :: columns, ranks]
  part = [integer(hsize_t) :: columns, 1]
  call h5pcreate_f(H5P_FILE_ACCESS_F, access, ierr)
  call h5pset_fapl_mpio_f(access, MPI_COMM_WORLD, MPI_INFO_NULL, ierr)
  call check(ierr == 0, 'HDF5 is over MPI')
  call h5pcreate_f(H5P_DATASET_XFER_F, transfer, ierr)
  call h5pset_dxpl_mpio_f(transfer, H5FD_MPIO_COLLECTIVE_F, ierr)
  call h5screate_simple_f(2, part, memory, ierr)
  call h5screate_simple_f(2, rows, space, ierr)

  call h5fcreate_f(path, H5F_ACC_TRUNC_F, file, ierr, access_prp=access)
  call check(ierr == 0, 'the file is made')
  call h5dcreate_f(file, 'rows', H5T_NATIVE_INTEGER, space, set, ierr)
  row = [(rank*columns + i, i=1, columns)]
  start = [integer(hsize_t) :: 0, rank]
  call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, start, part, ierr)
  call h5dwrite_f(set, H5T_NATIVE_INTEGER, row, part, ierr, memory, space, transfer)
  call check(ierr == 0, 'the row is written')
  call h5dclose_f(set, ierr)
  call h5fclose_f(file, ierr)

  call h5fopen_f(path, H5F_ACC_RDONLY_F, file, ierr, access_prp=access)
  call h5dopen_f(file, 'rows', set, ierr)
  other = mod(rank + 1, ranks)
  start = [integer(hsize_t) :: 0, other]
  call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, start, part, ierr)
  call h5dread_f(set, H5T_NATIVE_INTEGER, row, part, ierr, memory, space, transfer)
  call check(ierr == 0, 'the next rank''s row is read')
  call check(all([(row(i) == other*columns + i, i=1, columns)]), 'the row is what the next rank wrote')
  call h5dclose_f(set, ierr)
  call h5fclose_f(file, ierr)
  call h5sclose_f(space, ierr)
  call h5sclose_f(memory, ierr)
  call h5pclose_f(transfer, ierr)
  call h5pclose_f(access, ierr)
  call h5close_f(ierr)
  call end_with('wrote one HDF5 file from Fortran and read it', path)
end program hdf5_fortran
