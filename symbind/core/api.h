// Marks what the shared library exports: everything that the namespaces of public headers declare. The library is
// compiled with hidden visibility, so what only other headers declare stays inside.
#pragma once

#define SYMBIND_API [[gnu::visibility("default")]]
