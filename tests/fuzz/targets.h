// What the fuzzers and the replay of their corpora call: a reader on any bytes. It loads or throws Error; anything else
// is a finding.
#pragma once

#include <string>
#include <string_view>

namespace symbind::fuzz {

void read_params(std::string_view bytes);
void read_states(std::string_view bytes);
void read_json(std::string_view bytes);
void read_idx(std::string_view bytes);
void read_records(std::string_view bytes);  // a RecordIO file
void read_index(std::string_view bytes);    // of a RecordIO file
void decode(std::string_view bytes);        // a JPEG or PNG
void read_csv(std::string_view bytes);
void read_libsvm(std::string_view bytes);
void read_list(std::string_view bytes);  // of the labels of images
// A network with the shapes its variables declare: inferred, and where the arrays are few and small, bound and run.
void bind_network(std::string_view bytes);

// Runs a reader; an Error is the right answer to wrong bytes.
bool accepts(void (*reader)(std::string_view), std::string_view bytes);

}  // namespace symbind::fuzz
