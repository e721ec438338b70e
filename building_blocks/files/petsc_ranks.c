/* Heat along a line whose points all ranks have parts of: what is solved is what the right side was made from. */
#include "mpi_ranks.h"
#include <petscksp.h>

#define N 1000

int main(int argc, char **argv)
{
    Mat a;
    Vec x, b, u;
    KSP ksp;
    PetscInt first, last, i;
    PetscReal norm = 1;
    KSPConvergedReason reason = KSP_CONVERGED_ITERATING;

    begin(&argc, &argv);
    check(PetscInitialize(&argc, &argv, NULL, NULL) == 0, "PETSc starts");
    MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, N, N, 3, NULL, 2, NULL, &a);
    MatGetOwnershipRange(a, &first, &last);
    check(last - first < N || size == 1, "each rank has a part of the rows");
    for (i = first; i < last; i++) {
        if (i > 0)
            MatSetValue(a, i, i - 1, -1.0, INSERT_VALUES);
        if (i < N - 1)
            MatSetValue(a, i, i + 1, -1.0, INSERT_VALUES);
        MatSetValue(a, i, i, 2.5, INSERT_VALUES);
    }
    MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY);
    MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY);
    MatCreateVecs(a, &x, &b);
    VecDuplicate(x, &u);
    VecSet(u, 1.0);
    MatMult(a, u, b);
    KSPCreate(PETSC_COMM_WORLD, &ksp);
    KSPSetOperators(ksp, a, a);
    KSPSetTolerances(ksp, 1e-12, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT);
    check(KSPSolve(ksp, b, x) == 0, "the system is solved");
    KSPGetConvergedReason(ksp, &reason);
    check(reason > 0, "the solver converges");
    VecAXPY(x, -1.0, u);
    VecNorm(x, NORM_INFINITY, &norm);
    check(norm < 1e-8, "the solution is what the right side was made from");
    KSPDestroy(&ksp);
    VecDestroy(&x);
    VecDestroy(&b);
    VecDestroy(&u);
    MatDestroy(&a);
    PetscFinalize();
    return end("solved one system of 1000 equations by PETSc", NULL);
}
