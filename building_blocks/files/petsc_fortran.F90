! Heat along a line whose points all ranks have parts of: what is solved is what the right side was made from.
#include <petsc/finclude/petscksp.h>
program petsc_fortran
  use mpi_ranks
  use petscksp
  implicit none
  PetscInt, parameter :: n = 1000, one = 1
  PetscInt :: first, last, i
  PetscScalar :: beside = -1.0, middle = 2.5, unity = 1.0, minus = -1.0
  PetscReal :: norm, tolerance = 1d-12
  Mat :: a
  Vec :: x, b, u
  KSP :: solver
  PetscErrorCode :: failed

  call begin()
  call PetscInitialize(PETSC_NULL_CHARACTER, failed)
  call check(failed == 0, 'PETSc starts')
  call MatCreate(PETSC_COMM_WORLD, a, failed)
  call MatSetSizes(a, PETSC_DECIDE, PETSC_DECIDE, n, n, failed)
  call MatSetType(a, MATAIJ, failed)
  call MatSetUp(a, failed)
  call MatGetOwnershipRange(a, first, last, failed)
  call check(last - first < n .or. ranks == 1, 'each rank has a part of the rows')
  do i = first, last - 1
    if (i > 0) call MatSetValue(a, i, i - one, beside, INSERT_VALUES, failed)
    if (i < n - 1) call MatSetValue(a, i, i + one, beside, INSERT_VALUES, failed)
    call MatSetValue(a, i, i, middle, INSERT_VALUES, failed)
  end do
  call MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY, failed)
  call MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY, failed)
  call MatCreateVecs(a, x, b, failed)
  call VecDuplicate(x, u, failed)
  call VecSet(u, unity, failed)
  call MatMult(a, u, b, failed)
  call KSPCreate(PETSC_COMM_WORLD, solver, failed)
  call KSPSetOperators(solver, a, a, failed)
  call KSPSetTolerances(solver, tolerance, tolerance, 1d5, 1000, failed)
  call KSPSolve(solver, b, x, failed)
  call check(failed == 0, 'the system is solved')
  call VecAXPY(x, minus, u, failed)
  call VecNorm(x, NORM_INFINITY, norm, failed)
  call check(norm < 1d-8, 'the solution is what the right side was made from')
  call KSPDestroy(solver, failed)
  call VecDestroy(x, failed)
  call VecDestroy(b, failed)
  call VecDestroy(u, failed)
  call MatDestroy(a, failed)
  call PetscFinalize(failed)
  call end_with('solved one system of 1000 equations by PETSc from Fortran')
end program petsc_fortran
