/* weir/weir.hpp: lambdas, exceptions and lifetimes. */
#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>

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
        weir::builder b;
        b.source("numbers", numbers(100))
            .pipe(
                "double", [](weir::item in) { return weir::item::of(counted(2 * in.get<counted>().value)); },
                weir::stage_options().concurrency(4).output_order(WEIR_ORDER_INPUT))
            .pipe("pass", pass)
            .sink();
        weir::pipeline p = b.build();
        int expected = 0;
        for (weir::item &item : p) {
            assert_int_equal(item.get<counted>().value, expected);
            expected += 2;
        }
        assert_int_equal(expected, 200);
        assert_int_equal(p.account().handed_on, 100);
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
    std::optional<weir::error> why = p.stage_error("throws");
    assert_true(why.has_value());
    assert_int_equal(why->status(), WEIR_EEXCEPTION);
    assert_string_equal(why->message(), "no luck");
    assert_string_equal(why->stage(), "0:1:throws");
    assert_false(p.stage_error("numbers").has_value());
}

static void a_failed_pipeline_throws_in_its_consumer(void **)
{
    weir::builder b;
    b.source("numbers", numbers(50))
        .pipe(
            "throws", [](weir::item) -> weir::item { throw weir::error(WEIR_EIO, "the disk is gone", 5); },
            weir::stage_options().max_failures(0))
        .sink();
    weir::pipeline p = b.build();
    bool thrown = false;
    try {
        for (weir::item &item : p)
            assert_null(item.raw());
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
        assert_int_equal(e.status(), WEIR_ESYSTEM);
        assert_int_equal(e.library_code(), 2);
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
        assert_int_equal(e.status(), WEIR_EINVAL);
    }
}

static void types_are_declared_in_the_options(void **)
{
    weir::builder b;
    b.source("numbers", numbers(1), weir::stage_options().makes("number"))
        .pipe("words", pass, weir::stage_options().takes("word"))
        .sink();
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
                 return weir::item::of(counted(n++)).label(label);
             })
        .pipe("pass", pass)
        .pipe("new", [](weir::item, weir::task task) { return weir::item::of(std::string(task.label())); })
        .sink();
    weir::pipeline p = b.build();
    int n = 0;
    for (weir::item &item : p) {
        assert_string_equal(item.label(), ("item " + std::to_string(n++)).c_str());
        assert_string_equal(item.get<std::string>().c_str(), item.label());
    }
    assert_int_equal(n, 3);
}

static void hooks_run_and_their_exceptions_fail_the_task(void **)
{
    std::atomic<int> begun{ 0 }, ended{ 0 }, started{ 0 };
    weir::stage_options options;
    options.task_hook(
        [&](weir::task, const weir_item &in) {
            begun++;
            if (static_cast<counted *>(in.data)->value == 2)
                throw std::runtime_error("not this one");
        },
        [&](weir::task, const weir_task_end &) { ended++; });
    options.stage_hook([&](const char *) { started++; }, [&](const char *) { started--; });
    weir::builder b;
    b.source("numbers", numbers(4)).pipe("pass", pass, options).sink();
    {
        weir::pipeline p = b.build();
        int delivered = 0;
        for (weir::item &item : p)
            delivered += item ? 1 : 0;
        assert_int_equal(delivered, 3);
        assert_string_equal(p.stage_error("pass")->message(), "not this one");
    }
    assert_int_equal(begun, 4);
    assert_int_equal(ended, 3);
    assert_int_equal(started, 0);
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
        weir::pipeline p = b.build(weir::pipeline_options().observe(functions));
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
        weir::pipeline p = b.build(weir::pipeline_options().observe(functions));
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
                p.stop();
    }
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
        cmocka_unit_test(hooks_run_and_their_exceptions_fail_the_task),
        cmocka_unit_test(observers_are_told_and_may_throw),
#ifdef WEIR_SPAN
        cmocka_unit_test(spans_of_lambdas_are_told),
#endif
        cmocka_unit_test(stop_ends_the_loop),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
