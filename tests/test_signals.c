/* Stopping from signal handlers, and Ctrl-C as an API call. */
#include "tests/support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int endless(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    return weir_task_should_stop(task) ? WEIR_EOF : WEIR_SKIP;
}

static weir_pipeline *start_endless(void)
{
    static const weir_op op = { .name = "endless", .run = endless };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    return build(builder, NULL);
}

static void expect_stopped(weir_pipeline *pipeline)
{
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_ESTOPPED);
}

static weir_pipeline *handled;

static void stop_handled(int number)
{
    (void)number;
    weir_pipeline_stop_from_signal(handled);
}

TEST_CASE(a_handler_may_stop_a_pipeline)
{
    struct sigaction before, ours = { .sa_handler = stop_handled };
    handled = start_endless();
    sigaction(SIGUSR2, &ours, &before);
    raise(SIGUSR2);
    expect_stopped(handled);
    sigaction(SIGUSR2, &before, NULL);
    assert_int_equal(weir_pipeline_stop_signal(handled), 0);
    weir_pipeline_free(handled);
}

static void (*action_of(int number))(int)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    return now.sa_handler;
}

TEST_CASE(the_first_signal_stops_every_pipeline_that_asked)
{
    weir_pipeline *one = start_endless(), *other = start_endless(), *third = start_endless();
    assert_int_equal(weir_pipeline_stop_on_signals(one), WEIR_OK);
    assert_int_equal(weir_pipeline_stop_on_signals(other), WEIR_OK);
    assert_int_equal(weir_pipeline_stop_on_signals(other), WEIR_OK); /* once more changes nothing */
    raise(SIGTERM);
    expect_stopped(one);
    expect_stopped(other);
    assert_int_equal(weir_pipeline_stop_signal(one), SIGTERM);
    assert_int_equal(weir_pipeline_stop_signal(other), SIGTERM);
    weir_item item;
    assert_int_equal(weir_pipeline_next(third, &item, 0), WEIR_ETIMEDOUT);
    weir_pipeline_free(one);
    weir_pipeline_free(other);
    weir_pipeline_free(third);
}

static void own_handler(int number)
{
    (void)number;
}

TEST_CASE(what_signals_did_before_is_restored_with_the_last_pipeline)
{
    signal(SIGINT, own_handler);
    weir_pipeline *one = start_endless(), *other = start_endless();
    weir_pipeline_stop_on_signals(one);
    weir_pipeline_stop_on_signals(other);
    weir_pipeline_free(one);
    assert_true(action_of(SIGINT) != own_handler);
    weir_pipeline_free(other);
    assert_true(action_of(SIGINT) == own_handler);
    assert_true(action_of(SIGTERM) == SIG_DFL);
    signal(SIGINT, SIG_DFL);
}

TEST_CASE(a_pipeline_that_starts_after_the_signal_is_stopped_by_the_next_one)
{
    weir_pipeline *one = start_endless();
    weir_pipeline_stop_on_signals(one);
    raise(SIGINT);
    expect_stopped(one);
    weir_pipeline *other = start_endless();
    weir_pipeline_stop_on_signals(other);
    weir_pipeline_free(one);
    raise(SIGINT);
    expect_stopped(other);
    assert_int_equal(weir_pipeline_stop_signal(other), SIGINT);
    weir_pipeline_free(other);
}

/* The status of a child that is sent SIGINT and SIGTERM at once, and SIGTERM again and again if is_persistent. */
static int signalled_child(bool is_persistent)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        sigset_t both, before;
        sigemptyset(&both);
        sigaddset(&both, SIGINT);
        sigaddset(&both, SIGTERM);
        weir_pipeline *pipeline = start_endless();
        weir_pipeline_stop_on_signals(pipeline);
        pthread_sigmask(SIG_BLOCK, &both, &before);
        raise(SIGINT);
        raise(SIGTERM);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!is_persistent)
            _exit(0);
        while (true)
            raise(SIGTERM);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* On a busy machine the second one may be handled more than a second after the first, and kill as a later one does. */
TEST_CASE(a_signal_that_comes_twice_is_one)
{
    for (int status = 1; status != 0;) {
        status = signalled_child(false);
        assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
    }
}

TEST_CASE(a_later_signal_kills)
{
    int status = signalled_child(true);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* On a separate thread, so that handlers run during weir_pipeline_free(). */
static void *send_signals(void *argument)
{
    atomic_bool *over = argument;
    sigset_t blocked; /* the handler may raise it, to end the process */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    while (!atomic_load(over))
        raise(SIGUSR1);
    return NULL;
}

static void (*stop_all)(int number); /* the handler of the engine, without the default action after it */

static void call_handler(int number)
{
    (void)number;
    stop_all(SIGINT);
}

/* No handler uses a freed pipeline (sanitizers would report it). */
TEST_CASE(pipelines_may_be_freed_while_signals_arrive)
{
    atomic_bool over = false;
    weir_pipeline *kept = start_endless();
    weir_pipeline_stop_on_signals(kept);
    stop_all = action_of(SIGINT);
    signal(SIGUSR1, call_handler);
    pthread_t sender = thread_start(send_signals, &over);
    for (int i = 0; i < 50; i++) {
        weir_pipeline *pipeline = start_endless();
        weir_pipeline_stop_on_signals(pipeline);
        expect_stopped(pipeline);
        weir_pipeline_free(pipeline);
    }
    atomic_store(&over, true);
    thread_join(sender);
    signal(SIGUSR1, SIG_DFL);
    weir_pipeline_free(kept);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
