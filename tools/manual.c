#include "tool.h"
void tool_print_manual(void)
{
}
void tool_print_completion(void)
{
}
