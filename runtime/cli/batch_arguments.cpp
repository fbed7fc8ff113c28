// See batch_arguments.h.
#include "runtime/cli/batch_arguments.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "runtime/cli/batch_record.h"
#include "runtime/cli/output_path.h"

namespace lockstep::cli {

namespace {

constexpr const char* kFooter =
    R"(Input, one request per line; blank lines are skipped, formats may be mixed:
  {"id": "a", "prompt": "Once upon a time", "max_tokens": 40}
  {"id": "b", "messages": [{"role": "user", "content": "Tell me a story."}]}
  {"custom_id": "c", "method": "POST", "url": "/v1/chat/completions",
   "body": {"messages": [...]}}      (on one line)
  {"custom_id": "d", "method": "POST", "url": "/v1/completions",
   "body": {"prompt": "..."}}        (on one line)
A line (or its body) may set max_tokens (or max_completion_tokens), min_tokens, temperature, top_k,
top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, logit_bias, seed, stop,
include_stop_str_in_output, ignore_eos, logprobs, top_logprobs, return_token_ids and
truncate_prompt_tokens; a chat also tools and chat_template_kwargs. A prompt may be an array of
token ids. In a file that is named *.txt, or with --input-format text, each line is a prompt.

Output: one row per request in the order of completion, with the line number; a request that
cannot be answered becomes an error row. Rows are the same bytes in every run.

A job that was stopped or killed goes on with --resume: finished rows are kept as they are. What
the rows were made from is recorded in OUTPUT.job, and a changed input, model or option is refused.

Several processes share a job by MPI (mpirun) or by line number (--shard). Each writes a file of its
own, answers.rank-0.jsonl and so on; lockstep merge joins them. --resume takes any number of them.

Examples:
  lockstep batch --input requests.jsonl --output answers.jsonl
  lockstep batch -m model.gguf -i in.jsonl -o out.jsonl --slots 16 --max-tokens 256 --resume
  lockstep batch -m model.gguf -i in.jsonl --dry-run
  lockstep batch -i prompts.txt -o - | jq -r .text
  mpirun --map-by numa lockstep batch -m model.gguf -i in.jsonl -o out.jsonl
  srun lockstep batch -m model.gguf -i in.jsonl -o out.jsonl --shard slurm
)";

}  // namespace

void BatchArguments::add_to(CLI::App& app) {
  add_model_option(app, model);
  app.add_option("-i,--input", input, "Requests (a regular file: it is read twice)")
      ->type_name("FILE")
      ->required();
  app.add_option("--input-format", input_format,
                 "jsonl, or text: each line is a prompt; auto (default): text for *.txt")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"auto", "jsonl", "text"}));
  app.add_option("-o,--output", output,
                 "Answers, JSONL; must not exist unless --resume; - for standard output.\n"
                 "Required, unless with --dry-run")
      ->type_name("FILE");
  app.add_flag("--resume", resume,
               "Go on with an output that exists; start from the beginning if there is none");
  app.add_flag("--sorted", sorted, "Put the rows in the order of the input when all are there");
  app.add_flag("--dry-run", dry_run,
               "Answer and write nothing: check every line, count tokens, and estimate\n"
               "memory and time from a few steps");
  app.add_flag("--json", json, "With --dry-run: print the estimate as JSON");
  app.add_option("--shard", shard,
                 "Answer part of the input, beside other processes that answer the\n"
                 "rest: i/n (0/4 to 3/4), slurm (task of an array or of srun), auto\n"
                 "(whatever started it), mpi, none; default: mpi under mpirun")
      ->type_name("PART");
  sampling.add_to(app);
  sampling.add_logprobs_to(app);
  app.add_flag("--token-ids", token_ids, "Write the token ids of prompt and answer to every row");
  app.add_flag("--truncate-prompt", truncate_prompt,
               "Cut the front of prompts that leave no room for max_tokens, and say\n"
               "so in the row (default: such a prompt is an error row if it fills\n"
               "the context, else its answer is shorter)");
  chat.add_to(app, nullptr);
  session.add_to(app);
  size.add_to(app);
  engine.add_to(app);
  app.add_flag("--show", show, "Show each finished answer on stderr");
  app.add_option("--interval", interval,
                 "Between progress lines where stderr is no terminal (default 10)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0).description(""));
  app.add_option("--grace", grace,
                 "After a signal the current step is finished if it takes no longer\n"
                 "than this (default 10), else dropped")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0).description(""));
  app.add_option("--summary", summary,
                 "Write a summary as JSON to this file; must not exist unless --resume")
      ->type_name("FILE");
  profile.add_to(app);
  app.footer(kFooter);
}

void BatchArguments::check() const {
  sampling.check();
  if (output.empty() && !dry_run) {
    throw Error(ErrorCode::usage, "--output is required, unless with --dry-run");
  }
  if (json && !dry_run) throw Error(ErrorCode::usage, "--json is for --dry-run; see --summary");
  if ((output == "-" && (resume || sorted)) || (output.empty() && resume)) {
    throw Error(ErrorCode::usage, "--resume and --sorted need an --output that is a file");
  }
  if (!summary.empty() && summary == output) {
    throw Error(ErrorCode::usage, "--summary and --output name the same file");
  }
}

void BatchArguments::check_outputs(const RankTeam& team) const {
  own_profile(team).check();
  if (output == "-" && team.has_parts()) {
    throw Error(ErrorCode::usage, "processes that share a job need an --output that is a file");
  }
  // A job script that resumes writes the summary again.
  if (!summary.empty()) require_output(team.own_file(summary).string(), resume);
}

ProfileArguments BatchArguments::own_profile(const RankTeam& team) const {
  ProfileArguments own = profile;
  if (!own.trace.empty()) own.trace = team.own_file(own.trace).string();
  return own;
}

batch::InputFormat BatchArguments::format() const {
  return batch::format_named(input_format, input);
}

batch::JobFilesOptions BatchArguments::files(const RankTeam& team,
                                             const StopSignals& signals) const {
  batch::JobFilesOptions options;
  options.input = input;
  options.output = output.empty() ? "-" : team.own_file(output);
  if (options.output != "-") options.others = team.other_files(output, resume);
  options.format = format();
  options.resume = resume;
  options.sorted = sorted;
  options.flags = {&signals.stop(), &signals.drop()};
  return options;
}

batch::JobIdentity BatchArguments::identity(const batch::JobRecord& record) const {
  batch::JobIdentity job;
  std::error_code error;
  job.input = std::filesystem::weakly_canonical(input, error).string();
  const std::uint64_t bytes = std::filesystem::file_size(input, error);
  if (!error) job.input_bytes = bytes;
  job.output = output == "-" ? output : std::filesystem::weakly_canonical(output, error).string();
  job.options = record.options;
  job.options["model"] =
      fmt::format("{} bytes with hash {}", record.model.bytes, record.model.hash);
  job.options["ctx"] = std::to_string(session.context);
  job.options["resume"] = resume ? "true" : "false";
  return job;
}

batch::RequestDefaults BatchArguments::defaults(const Model& loaded) const {
  batch::RequestDefaults defaults;
  defaults.max_tokens = sampling.max_tokens;
  defaults.sampling = sampling.params;
  defaults.token_ids = token_ids;
  defaults.truncate_prompt = truncate_prompt;
  defaults.vocabulary = loaded.info().vocabulary;
  return defaults;
}

batch::JobRecord BatchArguments::record() const {
  batch::JobRecord record = known_record(model_path(model), format(), sampling, session);
  record.set("token_ids", token_ids);
  record.set("truncate_prompt", truncate_prompt);
  set_chat(record, chat);
  return record;
}

}  // namespace lockstep::cli
