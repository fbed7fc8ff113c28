// What a Jinja chat template writes, without running it: its literal text in order, with marks
// where a message's role, its content, or anything else computed is written. Enough to tell what a
// turn looks like, which is all that recognising a family of templates needs; control flow is left
// out.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

inline constexpr char kRoleMark = '\x01';
inline constexpr char kContentMark = '\x02';
inline constexpr char kOtherMark = '\x03';  // any other value, or one changed by a filter

// For "{{ '<|' + message['role'] + '|>\n' }}" and the like: "<|\x01|>\n".
std::string template_text(std::string_view chat_template);

}  // namespace lockstep
