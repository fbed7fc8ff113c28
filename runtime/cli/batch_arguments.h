// The options of `lockstep batch`, and what follows from them alone.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "lockstep/lockstep.h"
#include "runtime/batch/input.h"
#include "runtime/batch/job_files.h"
#include "runtime/batch/ranks.h"
#include "runtime/batch/record.h"
#include "runtime/batch/request.h"
#include "runtime/cli/chat_options.h"
#include "runtime/cli/memory_options.h"
#include "runtime/cli/options.h"
#include "runtime/cli/rank_team.h"
#include "runtime/cli/stop_signals.h"

namespace lockstep::cli {

struct BatchArguments {
  std::string model, input, output, summary;
  std::string input_format = "auto", shard;
  EngineArguments engine;
  SessionArguments session;
  JobSizeArguments size;
  SamplingArguments sampling;
  ChatArguments chat;
  ProfileArguments profile;
  double interval = 10;
  double grace = 10;
  bool show = false, resume = false, sorted = false;
  bool token_ids = false, truncate_prompt = false;
  bool dry_run = false, json = false;

  void add_to(CLI::App& app);

  // Whether they go together. Throws Error(usage).
  void check() const;
  // Whether this rank's files can be made, but for the output, which JobFiles looks at. Throws
  // Error(usage), Error(cannot_create).
  void check_outputs(const RankTeam& team) const;

  // Ranks have timelines of their own.
  ProfileArguments own_profile(const RankTeam& team) const;
  batch::InputFormat format() const;
  batch::JobFilesOptions files(const RankTeam& team, const StopSignals& signals) const;
  batch::RequestDefaults defaults(const Model& loaded) const;
  // What rows are made from, as far as it is known before the model is loaded.
  batch::JobRecord record() const;
  // What has to be the same for ranks that share a job.
  batch::JobIdentity identity(const batch::JobRecord& record) const;
};

}  // namespace lockstep::cli
