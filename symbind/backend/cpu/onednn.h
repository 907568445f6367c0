// Adds oneDNN's implementations to those of the CPU. Defined in backend/onednn; the stub in no_onednn adds none.
#pragma once

namespace symbind {

class ImplementationTable;

void add_onednn(ImplementationTable& table);

}  // namespace symbind
