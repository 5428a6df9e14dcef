// The files of one model: a single GGUF file, or NAME-00001-of-00003.gguf and the rest of them.
#pragma once

#include <string>
#include <vector>

#include "header.hpp"

namespace dovetail::gguf {

/// The name of the one model in a folder: its GGUF file, or the first part of it. Files of projectors
/// (mmproj-*) are no models. Empty if there is none.
/// errors   DVT_EINVAL: there are several.
std::string find_model(const FormatOpen& in, Call call);
/// Whether the folder has any file that find_model() looks at.
bool has_model(const Folder& folder);

/// Reads the file's header and those of its other parts, the first one first.
/// errors   those of read_header(). DVT_EFORMAT: parts that do not belong together. DVT_EIO: parts that are not
///          there, all of them in one line.
std::vector<Header> read_parts(const FormatOpen& in, const File& file, Call call);

}  // namespace dovetail::gguf
