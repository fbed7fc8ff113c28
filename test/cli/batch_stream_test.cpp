// Where the rows and the messages of `lockstep batch` go: pipes with slow readers and with none,
// full disks, and how much memory a long input takes.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "test/cli/batch_jobs.h"

using namespace lockstep::test;

namespace {

// A named pipe of two pages, with its reading end. A page counts as full for poll() as soon as it
// has a byte, so with one alone hardly anything would fit.
class Pipe {
 public:
  explicit Pipe(const std::filesystem::path& path) : path_(path.string()) {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(descriptor_ >= 0);
    ::fcntl(descriptor_, F_SETPIPE_SZ, 8192);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { close(); }

  const char* name() const { return path_.c_str(); }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  std::size_t waiting() const {
    int bytes = 0;
    return ::ioctl(descriptor_, FIONREAD, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
  }
  bool wait_until_full() const {
    return wait_until([&] { return waiting() > 2048 && stalled(); });
  }
  // All until the writer closes; with a pause after every few bytes if it is to be slow.
  std::string read_all(bool slowly) {
    std::string text;
    char buffer[512];
    for (;;) {
      pollfd ready{descriptor_, POLLIN, 0};
      if (::poll(&ready, 1, 60000) != 1) return text;
      const ssize_t got = ::read(descriptor_, buffer, slowly ? 97 : sizeof buffer);
      if (got <= 0) return text;
      text.append(buffer, static_cast<std::size_t>(got));
      if (slowly) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  // Nothing came for a while.
  bool stalled() const {
    const std::size_t before = waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return waiting() == before;
  }

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace

TEST_CASE("rows go down a pipe, however slowly it is read") {
  BatchFolder job(requests(150));
  const std::vector<std::string> expected = job.undisturbed();
  Pipe pipe(job.dir.path() / "pipe");
  job.output = "-";
  Invocation how;
  how.output_to = pipe.name();
  std::string rows;
  how.meanwhile = [&](pid_t) { rows = pipe.read_all(true); };
  const Outcome outcome = job.run({}, how);
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(rows.size() > 8192);
  CHECK(sorted_lines(rows) == expected);
  CHECK_FALSE(std::filesystem::exists(job.dir.path() / "-.job"));
  CHECK(job.run({"--resume"}).code == 64);
  CHECK(job.run({"--sorted"}).code == 64);
}

TEST_CASE("a pipe whose reader has gone ends the job with one line") {
  BatchFolder job(requests(300));
  Pipe pipe(job.dir.path() / "pipe");
  job.output = "-";
  Invocation how;
  how.output_to = pipe.name();
  how.meanwhile = [&](pid_t) {
    CHECK(pipe.wait_until_full());
    pipe.close();
  };
  const Outcome outcome = job.run({}, how);
  CHECK(outcome.code == 74);
  CHECK(mentions(outcome, "error: standard output: cannot write: Broken pipe"));
  Invocation full;
  full.output_to = "/dev/full";
  CHECK(job.run({}, full).code == 74);
}

TEST_CASE("a signal while nobody reads the pipe: the row is finished if somebody does in the end") {
  BatchFolder job(requests(300));
  const std::vector<std::string> expected = job.undisturbed();
  job.output = "-";
  for (const bool reads_again : {true, false}) {
    Pipe pipe(job.dir.path() / (reads_again ? "read" : "unread"));
    Invocation how;
    how.output_to = pipe.name();
    std::string rows;
    how.meanwhile = [&](pid_t child) {
      CHECK(pipe.wait_until_full());
      ::kill(child, SIGTERM);
      if (!reads_again) ::kill(child, SIGINT);
      if (reads_again) rows = pipe.read_all(false);
    };
    const Outcome outcome = job.run({"--grace", "60"}, how);
    INFO(outcome.err);
    CHECK(outcome.code == 75);
    if (!reads_again) continue;
    check_rows(rows);
    for (const std::string& row : lines_of(rows)) {
      CHECK(std::find(expected.begin(), expected.end(), row) != expected.end());
    }
  }
}

TEST_CASE("messages that nobody reads do not stop the job") {
  const BatchFolder job(requests(60));
  const std::vector<std::string> expected = job.undisturbed();
  const Pipe pipe(job.dir.path() / "pipe");
  Invocation how;
  how.errors_to = pipe.name();
  const Outcome outcome = job.run({"--show", "--interval", "0"}, how);
  CHECK(outcome.code == 0);
  CHECK(pipe.waiting() > 1000);
  CHECK(sorted_lines(job.rows()) == expected);
}

TEST_CASE("a job whose files may not grow ends with whole rows and goes on") {
  const BatchFolder job(requests(60, 20));
  Invocation small;
  small.file_bytes = 3000;
  const Outcome outcome = job.run({"--slots", "2"}, small);
  CHECK(outcome.code == 74);
  check_rows(job.rows());
  CHECK(job.run({"--resume"}).code == 0);
  CHECK(sorted_lines(job.rows()) == job.undisturbed());
}

namespace {

// In a child with a file system of its own: a job until the disk is full, once more while it is,
// and a last time with space. Writes the exit codes and the rows of each into `report`.
[[noreturn]] void fill_a_disk(const std::filesystem::path& disk, const std::string& input,
                              const std::filesystem::path& report) {
  constexpr int kNotAllowed = 77;
  const std::string user = std::to_string(::getuid());
  const std::string group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  } else if (::unshare(CLONE_NEWNS) != 0) {
    ::_exit(kNotAllowed);
  }
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=32k") != 0) ::_exit(kNotAllowed);
  const std::filesystem::path ballast = disk / "ballast";
  std::ofstream(ballast) << std::string(16384, 'b');
  const std::filesystem::path output = disk / "out";
  std::ofstream out(report);
  for (int i = 0; i < 3; ++i) {
    if (i == 2) std::filesystem::remove(ballast);
    const Outcome outcome = run({"batch", "-i", input, "-o", output.string(), "--resume"});
    const std::string rows = TempDir::read(output);
    out << nlohmann::json{{"code", outcome.code}, {"err", outcome.err}, {"rows", rows}} << "\n";
  }
  out.close();
  ::_exit(0);
}

}  // namespace

TEST_CASE("a full disk ends the job with whole rows; with space again it goes on") {
  const BatchFolder job(requests(120, 8));
  const std::vector<std::string> expected = job.undisturbed();
  const std::filesystem::path disk = job.dir.path() / "disk";
  std::filesystem::create_directory(disk);
  const std::filesystem::path report = job.dir.path() / "report";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) fill_a_disk(disk, job.input.string(), report);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    std::cout << "SKIPPED: no file system can be mounted here\n";
    return;
  }
  REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  std::vector<nlohmann::json> runs;
  for (const std::string& line : lines_of(TempDir::read(report)))
    runs.push_back(nlohmann::json::parse(line));
  REQUIRE(runs.size() == 3);
  for (int i = 0; i < 2; ++i) {
    INFO(runs[i].at("err"));
    CHECK(runs[i].at("code") == 74);
    CHECK(runs[i].at("err").get<std::string>().find("No space left") != std::string::npos);
    check_rows(runs[i].at("rows"));
    CHECK_FALSE(runs[i].at("rows").get<std::string>().empty());
  }
  INFO(runs[2].at("err"));
  CHECK(runs[2].at("code") == 0);
  check_rows(runs[2].at("rows"));
  CHECK(sorted_lines(runs[2].at("rows")) == expected);
}
