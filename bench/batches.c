/* bench_batches CONTRACT NOW: a sweep that prints one line per batch: when it ended and how long it took, in
 * microseconds, and the rows that went. Part of the benchmark. */
#include <inttypes.h>
#include <stdio.h>

#include <lapse.h>

static void print_batch(void *context, const struct lapse_progress *p)
{
    int64_t *rows_before = context;
    if (p->finished)
        return;
    printf("%" PRId64 " %" PRId64 " %" PRId64 "\n", p->elapsed_us, p->batch_us, p->rows_all - *rows_before);
    *rows_before = p->rows_all;
}

static int sweep(const struct lapse_contract *contract, const char *now)
{
    int64_t rows_before = 0;
    struct lapse_options options = {.now = now, .progress = print_batch, .context = &rows_before};
    struct lapse_report *report = lapse_sweep(contract, &options);
    int code = (int)lapse_report_exit(report);
    if (code)
        lapse_report_text(report, stderr, stderr, 0, 0);
    lapse_report_free(report);
    return code;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: bench_batches CONTRACT NOW\n", stderr);
        return LAPSE_BAD_INPUT;
    }
    struct lapse_report *mistakes = NULL;
    struct lapse_contract *contract = lapse_contract_load(argv[1], &mistakes);
    if (!contract) {
        lapse_report_text(mistakes, stderr, stderr, 0, 0);
        lapse_report_free(mistakes);
        return LAPSE_BAD_INPUT;
    }
    int code = sweep(contract, argv[2]);
    lapse_contract_free(contract);
    return code;
}
