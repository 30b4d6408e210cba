#include "tests/fenced.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/test_case.h"

fenced fenced_new(size_t size_bytes, bool at_start)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t room_bytes = (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
    fenced memory = { .size_bytes = size_bytes, .mapping_bytes = room_bytes + 2 * page_bytes };
    memory.mapping = mmap(NULL, memory.mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory.mapping, MAP_FAILED);
    uint8_t *room = (uint8_t *)memory.mapping + page_bytes;
    if (room_bytes > 0)
        assert_int_equal(mprotect(room, room_bytes, PROT_READ | PROT_WRITE), 0);
    memory.data = at_start ? room : room + room_bytes - size_bytes;
    return memory;
}

void fenced_free(fenced *memory)
{
    if (memory->mapping)
        munmap(memory->mapping, memory->mapping_bytes);
    *memory = (fenced){ 0 };
}
