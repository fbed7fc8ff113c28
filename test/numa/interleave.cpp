// Runs a command under a memory policy that interleaves all nodes, as `numactl --interleave=all`
// does: what a placement has to prevail against.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
  constexpr int kInterleave = 3;
  unsigned long nodes = 0b11;
  if (argc < 2 || syscall(SYS_set_mempolicy, kInterleave, &nodes, 64) != 0) {
    std::perror("set_mempolicy");
    return 1;
  }
  execvp(argv[1], argv + 1);
  std::perror(argv[1]);
  return 127;
}
