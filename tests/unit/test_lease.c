#include "lease.h"

#include "sqlite_file.h"
int main(void)
{
    return 0;
}
