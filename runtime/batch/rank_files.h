// Names of the files that the ranks of one job write: OUT.jsonl is OUT.rank-3.jsonl for rank 3.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::batch {

std::filesystem::path rank_file(const std::filesystem::path& path, unsigned rank);

// OUT.rank-*.jsonl, for messages.
std::string rank_files_pattern(const std::filesystem::path& path);

// Those that exist, by rank, whatever the number of ranks was when they were written.
std::vector<std::filesystem::path> find_rank_files(const std::filesystem::path& path);

}  // namespace lockstep::batch
