// Each rank sends the next one a list of texts, which Boost.MPI packs by Boost.Serialization.
#include "mpi_ranks.h"
#include <boost/mpi.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <functional>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    {
        boost::mpi::communicator world;
        std::vector<std::string> sent(3, "of rank " + std::to_string(rank)), received;
        boost::mpi::request request = world.isend((rank + 1) % size, 0, sent);
        world.recv((rank + size - 1) % size, 0, received);
        request.wait();
        check(received == std::vector<std::string>(3, "of rank " + std::to_string((rank + size - 1) % size)),
              "the list is what the rank before sent");
        check(boost::mpi::all_reduce(world, rank, std::plus<int>()) == size * (size - 1) / 2, "the sum of the ranks");
    }
    return end("sent lists of texts by Boost.MPI", NULL);
}
