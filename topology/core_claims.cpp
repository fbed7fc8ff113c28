// A claim is a socket that is bound to a name in Linux's abstract namespace: no file is left
// behind, nothing has to be cleaned up, and a name can be had once.
#include "topology/core_claims.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace lockstep::topology {

struct CoreClaims::Claim {
  explicit Claim(int descriptor) : socket(descriptor) {}
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() { close(socket); }
  int socket;
};

namespace {

// The socket, or -1 with errno.
int claim(unsigned processor) {
  const std::string name =
      "lockstep-" + std::to_string(getuid()) + "-core-" + std::to_string(processor);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a zero: abstract
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), length) == 0) return descriptor;
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

long number(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? 0 : std::strtol(value, nullptr, 10);
}

}  // namespace

CoreClaims::CoreClaims(const std::vector<unsigned>& processors) {
  static std::mutex mutex;
  static std::map<unsigned, std::weak_ptr<Claim>> ours;
  const std::lock_guard lock(mutex);
  for (const unsigned processor : processors) {
    std::shared_ptr<Claim> held = ours[processor].lock();
    if (!held) {
      const int descriptor = claim(processor);
      if (descriptor < 0) {
        if (errno == EADDRINUSE) taken_.push_back(processor);
        continue;
      }
      held = std::make_shared<Claim>(descriptor);
      ours[processor] = held;
    }
    claims_.push_back(std::move(held));
  }
}

bool is_one_of_several_ranks() {
  const bool slurm = std::getenv("SLURM_LOCALID") != nullptr && number("SLURM_NTASKS") > 1;
  return slurm || number("OMPI_COMM_WORLD_LOCAL_SIZE") > 1 || number("MPI_LOCALNRANKS") > 1;
}

}  // namespace lockstep::topology
