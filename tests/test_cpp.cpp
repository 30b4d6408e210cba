/* weir/weir.hpp: lambdas, exceptions and lifetimes. */
#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <unistd.h>

#include <weir/weir.hpp>

extern "C" {
#include <cmocka.h> /* last: it defines macros with names like fail */
#undef stop         // a macro of cmocka's
}

static std::atomic<int> alive;

/* A value that is counted while it lives. */
struct counted {
    explicit counted(int v) : value(v)
    {
        alive++;
    }
    counted(counted &&other) noexcept : value(other.value)
    {
        alive++;
    }
    ~counted()
    {
        alive--;
    }
    int value;
};

static auto numbers(int count)
{
    return [n = 0, count]() mutable { return n < count ? weir::item::of(counted(n++)) : weir::item(); };
}

static weir::item pass(weir::item in)
{
    return in;
}

static void items_come_in_order_and_are_released(void **)
{
    {
        weir::stage_options four;
        four.concurrency = 4;
        four.output_order = WEIR_ORDER_INPUT;
        weir::builder b;
        b.source("numbers", numbers(100))
            .pipe(
                "double", [](weir::item in) { return weir::item::of(counted(2 * in.get<counted>().value)); }, four)
            .pipe("pass", pass)
            .sink();
        weir::pipeline p = b.build();
        int expected = 0;
        for (weir::item &item : p) {
            assert_int_equal(item.get<counted>().value, expected);
            expected += 2;
        }
        assert_int_equal(expected, 200);
        assert_int_equal(p.account().passed_on, 100);
    }
    assert_int_equal(alive, 0);
}

static void what_nobody_takes_is_released(void **)
{
    {
        weir::builder b;
        b.source("numbers", numbers(100)).pipe("pass", pass).sink();
        weir::pipeline p = b.build();
        weir::item item;
        assert_int_equal(p.next(item), WEIR_OK);
        weir::pipeline moved = std::move(p);
        assert_int_equal(moved.next(item), WEIR_OK);
        weir::builder other;
        other.source("numbers", numbers(100)).pipe("pass", pass).sink();
        moved = other.build(); /* the first one ends before its functions */
        assert_int_equal(moved.next(item), WEIR_OK);
    }
    assert_int_equal(alive, 0);
}

static void an_exception_is_the_failure_of_its_task(void **)
{
    weir::builder b;
    b.source("numbers", numbers(5))
        .pipe("throws",
              [](weir::item in) -> weir::item {
                  switch (in.get<counted>().value) {
                  case 0: throw std::runtime_error("no luck");
                  case 1: throw weir::error(WEIR_EDATA, "damaged", 7);
                  case 2: throw std::bad_alloc();
                  case 3: throw 42;
                  default: return in;
                  }
              })
        .sink();
    weir::pipeline p = b.build();
    int delivered = 0;
    for (weir::item &item : p)
        delivered += item.get<counted>().value == 4;
    assert_int_equal(delivered, 1);
    assert_int_equal(p.account("throws").failed, 4);
    weir_error why;
    assert_int_equal(weir_pipeline_error(p.raw(), "throws", &why), WEIR_EEXCEPTION);
    assert_string_equal(why.message, "no luck");
    assert_string_equal(why.stage, "0:1:throws");
}

static void a_failed_pipeline_throws_in_its_consumer(void **)
{
    weir::stage_options strict;
    strict.max_failures.kind = WEIR_FAILURES_COUNT;
    weir::builder b;
    b.source("numbers", numbers(50))
        .pipe(
            "throws", [](weir::item) -> weir::item { throw weir::error(WEIR_EIO, "the disk is gone", 5); }, strict)
        .sink();
    weir::pipeline p = b.build();
    bool thrown = false;
    try {
        for (weir::item &item : p)
            assert_null(item.data);
    } catch (const weir::error &e) {
        thrown = std::strstr(e.what(), "the disk is gone") != nullptr;
    }
    assert_true(thrown);
}

static void a_source_that_throws_fails_the_pipeline(void **)
{
    weir::builder b;
    b.source("bad", []() -> weir::item { throw std::system_error(2, std::generic_category(), "no list"); }).sink();
    weir::pipeline p = b.build();
    weir::item item;
    try {
        p.next(item);
        fail();
    } catch (const weir::error &e) {
        assert_int_equal(e.why.status, WEIR_ESYSTEM);
        assert_int_equal(e.why.library_code, 2);
    }
}

static void mistakes_are_thrown_by_build(void **)
{
    weir::builder b;
    b.source("two words", numbers(1)).sink();
    try {
        b.build();
        fail();
    } catch (const weir::error &e) {
        assert_int_equal(e.why.status, WEIR_EINVAL);
    }
}

static void types_are_declared_in_the_options(void **)
{
    weir::stage_options number, word;
    number.makes = "number";
    word.takes = "word";
    weir::builder b;
    b.source("numbers", numbers(1), number).pipe("words", pass, word).sink();
    try {
        b.build();
        fail();
    } catch (const weir::error &e) {
        assert_non_null(std::strstr(e.what(), "\"number\""));
    }
}

static void labels_are_copied_and_inherited(void **)
{
    weir::builder b;
    b.source("named",
             [n = 0]() mutable {
                 if (n == 3)
                     return weir::item();
                 std::string label = "item " + std::to_string(n);
                 return weir::item::of(counted(n++)).labelled(label);
             })
        .pipe("pass", pass)
        .pipe("new", [](weir::item, weir_task *task) { return weir::item::of(std::string(weir_task_label(task))); })
        .sink();
    weir::pipeline p = b.build();
    int n = 0;
    for (weir::item &item : p) {
        assert_string_equal(item.label, ("item " + std::to_string(n++)).c_str());
        assert_string_equal(item.get<std::string>().c_str(), item.label);
    }
    assert_int_equal(n, 3);
}

static void observers_are_told_and_may_throw(void **)
{
    std::atomic<int> failures{ 0 }, ends{ 0 };
    {
        weir::observer functions;
        functions.failure = [&](const weir_failure &failure) {
            failures += failure.status == WEIR_EEXCEPTION;
            throw std::runtime_error("observers may not");
        };
        functions.run_end = [&](const weir_run_end &) { ends++; };
        weir::builder b;
        b.source("numbers", numbers(3))
            .pipe("throws", [](weir::item) -> weir::item { throw std::runtime_error("no"); })
            .sink();
        weir::pipeline_options options;
        options.lambdas.push_back(functions);
        weir::pipeline p = b.build(options);
        weir::item item;
        assert_int_equal(p.next(item), WEIR_EOF);
    }
    assert_int_equal(failures, 3);
    assert_int_equal(ends, 1);
}

#ifdef WEIR_SPAN
static void spans_of_lambdas_are_told(void **)
{
    std::atomic<int> spans{ 0 };
    {
        weir::observer functions;
        functions.lap = [&](const weir_subject_lap &lap) {
            if (lap.subject == WEIR_SUBJECT_SPAN)
                spans += static_cast<int>(lap.metrics.span.num_spans);
        };
        weir_span_name *name = weir_span_name_get("cpp", "lambda");
        weir::builder b;
        b.source("numbers", numbers(5))
            .pipe("pass",
                  [=](weir::item item) {
                      WEIR_SPAN(name);
                      return item;
                  })
            .sink();
        weir::pipeline_options options;
        options.lambdas.push_back(functions);
        weir::pipeline p = b.build(options);
        for (weir::item &item : p)
            (void)item;
    }
    assert_int_equal(spans, 5);
}
#endif

static void stop_ends_the_loop(void **)
{
    {
        weir::builder b;
        b.source("numbers", numbers(1 << 30)).sink();
        weir::pipeline p = b.build();
        for (weir::item &item : p)
            if (item.get<counted>().value == 10)
                weir_pipeline_stop(p.raw());
    }
    assert_int_equal(alive, 0);
}

/* Each run takes three items and stores where it was. */
static void checkpoints_continue_a_run(void **)
{
    const std::string path = "/tmp/weir-cpp-" + std::to_string(getpid());
    std::string handled;
    for (int run = 0; run < 3; run++) {
        std::optional<weir::checkpoint> last = weir::load_checkpoint(path);
        assert_int_equal(last.has_value(), run > 0);
        weir::pipeline_options options;
        options.checkpoints = WEIR_CHECKPOINTS_DONE;
        if (last) {
            options.resume_from = { last->text };
            assert_string_equal(last->state.c_str(), handled.c_str());
        }
        weir::builder b;
        b.source("numbers", numbers(8)).sink();
        weir::pipeline p = b.build(options);
        weir::item item;
        for (int i = 0; i < 3 && p.next(item) == WEIR_OK; i++) {
            handled += std::to_string(item.get<counted>().value);
            p.mark_done(item);
        }
        p.store_checkpoint(path, handled);
        assert_non_null(std::strstr(p.checkpoint_text().c_str(), "done 0"));
    }
    assert_string_equal(handled.c_str(), "01234567");
    std::FILE *file = std::fopen(path.c_str(), "a");
    std::fclose((std::fputc('x', file), file));
    try {
        weir::load_checkpoint(path);
        fail_msg("a damaged file was read");
    } catch (const weir::error &e) {
        assert_int_equal(e.why.status, WEIR_EDATA);
    }
    std::remove(path.c_str());
    assert_int_equal(alive, 0);
}

int main()
{
    weir_log_set_level(WEIR_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_in_order_and_are_released),
        cmocka_unit_test(what_nobody_takes_is_released),
        cmocka_unit_test(an_exception_is_the_failure_of_its_task),
        cmocka_unit_test(a_failed_pipeline_throws_in_its_consumer),
        cmocka_unit_test(a_source_that_throws_fails_the_pipeline),
        cmocka_unit_test(mistakes_are_thrown_by_build),
        cmocka_unit_test(types_are_declared_in_the_options),
        cmocka_unit_test(labels_are_copied_and_inherited),
        cmocka_unit_test(observers_are_told_and_may_throw),
#ifdef WEIR_SPAN
        cmocka_unit_test(spans_of_lambdas_are_told),
#endif
        cmocka_unit_test(stop_ends_the_loop),
        cmocka_unit_test(checkpoints_continue_a_run),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
