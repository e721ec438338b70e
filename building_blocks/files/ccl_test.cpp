// An allreduce by oneCCL over all ranks of the job, checked; prints the version of the library that made it.
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <oneapi/ccl.hpp>
#include <vector>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size = 0, rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long wrong = 0;
    {
        ccl::init();
        ccl::shared_ptr_class<ccl::kvs> store;
        ccl::kvs::address_type address{};
        if (rank == 0) {
            store = ccl::create_main_kvs();
            address = store->get_address();
        }
        MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
        if (rank != 0)
            store = ccl::create_kvs(address);
        auto ranks = ccl::create_communicator(size, rank, store);
        const size_t count = 100000;
        std::vector<float> mine(count), sum(count, -1);
        for (size_t i = 0; i < count; i++)
            mine[i] = static_cast<float>(rank + 1 + static_cast<int>(i % 7));
        ccl::allreduce(mine.data(), sum.data(), count, ccl::reduction::sum, ranks).wait();
        for (size_t i = 0; i < count; i++)
            wrong += sum[i] != static_cast<float>(size * (size + 1) / 2 + size * static_cast<int>(i % 7));
        auto version = ccl::get_library_version();
        std::printf("oneCCL %u.%u.%u, rank %d of %d: %ld of %zu sums wrong\n", version.major, version.minor,
                    version.update, rank, size, wrong, count);
    }
    MPI_Finalize();
    return wrong != 0;
}
