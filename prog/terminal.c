/* terminal: what a stream can show. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "prog.h"

static bool set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* Asks for the locale's character set without setting the process's locale, on which parsing may depend. */
static bool locale_is_utf8(void)
{
    locale_t l = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = l && strcmp(nl_langinfo_l(CODESET, l), "UTF-8") == 0;
    if (l)
        freelocale(l);
    return utf8;
}

struct terminal terminal_of(FILE *stream)
{
    bool dumb = !set("TERM") || strcmp(getenv("TERM"), "dumb") == 0;
    bool is = isatty(fileno(stream)) && !dumb;
    return (struct terminal){.is = is, .colour = is && !set("NO_COLOR"), .utf8 = locale_is_utf8()};
}

int terminal_width(FILE *stream)
{
    struct winsize size;
    if (!isatty(fileno(stream)))
        return 0;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}
