/*
 * weir for C++17: the same pipelines, with destructors, lambdas and exceptions. Header only, over the C functions.
 *
 *     weir::builder b;
 *     b.source("numbers", [n = 0]() mutable { return n < 100 ? weir::item::of(n++) : weir::item(); });
 *     b.pipe("square", [](weir::item in) { return weir::item::of(in.get<int>() * in.get<int>()); },
 *            weir::stage_options().concurrency(4));
 *     b.sink();
 *     weir::pipeline p = b.build();
 *     for (weir::item &item : p)
 *         std::cout << item.get<int>() << '\n';
 *
 * Functions given to the builder run on the pipeline's threads, several at once if a stage has several slots. An
 * exception thrown by one fails the task (one thrown by an observer is logged); it never passes through C code. Wrong
 * use and a failure of the pipeline throw weir::error.
 */
#ifndef WEIR_WEIR_HPP
#define WEIR_WEIR_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <weir/engine.h>

namespace weir
{

/* ---- errors ----------------------------------------------------------------------------------------------------- */

/* what() is the line made by weir_error_format(). If an operation throws it, the task fails with exactly this
   error. */
class error : public std::runtime_error
{
  public:
    explicit error(const weir_error &why) : std::runtime_error(line_of(why)), why_(why)
    {
    }

    error(int status, const std::string &message, int library_code = 0) : error(made(status, library_code, message))
    {
    }

    int status() const noexcept
    {
        return why_.status;
    }
    int library_code() const noexcept
    {
        return why_.library_code;
    }
    const char *stage() const noexcept
    {
        return why_.stage;
    }
    const char *label() const noexcept
    {
        return why_.label;
    }
    const char *message() const noexcept
    {
        return why_.message;
    }

  private:
    static std::string line_of(const weir_error &why)
    {
        char line[WEIR_ERROR_LINE];
        weir_error_format(&why, line, sizeof line);
        return line;
    }

    static weir_error made(int status, int library_code, const std::string &message)
    {
        weir_error why = {};
        weir_error_set(&why, status, library_code, "%s", message.c_str());
        return why;
    }

    weir_error why_;
};

namespace detail
{

/* Not every function sets *why; the status text is then the message. */
inline void check(int status, const weir_error *why = nullptr)
{
    if (status == WEIR_OK)
        return;
    if (why && why->status)
        throw error(*why);
    throw error(status, weir_status_text(status));
}

/* Inside a catch block: converts the current exception to a status, a code and a text. */
template <typename Tell> int tell_exception(Tell tell) noexcept
{
    try {
        throw;
    } catch (const error &e) {
        return tell(e.status() < 0 ? e.status() : static_cast<int>(WEIR_EEXCEPTION), e.library_code(), e.message());
    } catch (const std::bad_alloc &e) {
        return tell(WEIR_ENOMEM, 0, e.what());
    } catch (const std::system_error &e) {
        return tell(WEIR_ESYSTEM, e.code().value(), e.what());
    } catch (const std::exception &e) {
        return tell(WEIR_EEXCEPTION, 0, e.what());
    } catch (...) {
        return tell(WEIR_EEXCEPTION, 0, "an exception that is not a std::exception");
    }
}

inline int fail_task(weir_task *task) noexcept
{
    return tell_exception(
        [task](int status, int code, const char *text) { return weir_task_fail(task, status, code, "%s", text); });
}

} // namespace detail

/* ---- items ------------------------------------------------------------------------------------------------------ */

/* Owns one item and its data. Can be moved, not copied. May be empty. */
class item
{
  public:
    item() noexcept : raw_()
    {
    }
    item(item &&other) noexcept : raw_(other.raw_), own_label_(std::move(other.own_label_))
    {
        other.raw_ = weir_item();
    }

    item &operator=(item &&other) noexcept
    {
        if (this != &other) {
            weir_item_release(&raw_);
            raw_ = other.raw_;
            own_label_ = std::move(other.own_label_);
            other.raw_ = weir_item();
        }
        return *this;
    }

    ~item()
    {
        weir_item_release(&raw_);
    }

    /* Makes an item that holds a C++ value. It has no declared type; see builder::pipe() for how to declare one. */
    template <typename T> static item of(T value, std::size_t size_bytes = 0)
    {
        item made;
        made.raw_.data = new T(std::move(value));
        made.raw_.size_bytes = size_bytes;
        made.raw_.release = [](void *data, void *) { delete static_cast<T *>(data); };
        return made;
    }

    /* Takes ownership of an item made by C code; *raw is empty afterwards. */
    static item adopt(weir_item *raw) noexcept
    {
        item made;
        made.raw_ = *raw;
        *raw = weir_item();
        return made;
    }

    explicit operator bool() const noexcept
    {
        return raw_.data != nullptr;
    }

    /* The data as a T. Not checked: only weir_item.type says what it is. */
    template <typename T> T &get() const noexcept
    {
        return *static_cast<T *>(raw_.data);
    }

    const char *label() const noexcept
    {
        return own_label_ ? own_label_->c_str() : raw_.label ? raw_.label : "";
    }

    /* Sets the label of the item that the operation returns. */
    item &&label(std::string text) &&
    {
        own_label_ = std::move(text);
        return std::move(*this);
    }

    std::uint64_t seq() const noexcept
    {
        return raw_.seq;
    }
    std::uint64_t epoch() const noexcept
    {
        return raw_.epoch;
    }
    std::uint32_t source() const noexcept
    {
        return raw_.source;
    }
    const char *type() const noexcept
    {
        return raw_.type ? raw_.type : "";
    }
    weir_item *raw() noexcept
    {
        return &raw_;
    }

    /* For operations: moves the item to *out, which is empty, and its label to the task. */
    int hand_on(weir_item *out, weir_task *task) noexcept
    {
        if (own_label_ && weir_task_set_label(task, own_label_->c_str()) != WEIR_OK)
            return WEIR_ENOMEM;
        weir_item_move(out, &raw_);
        return WEIR_OK;
    }

  private:
    weir_item raw_;
    std::optional<std::string> own_label_;
};

/* What an operation can query about its task; valid while the task runs. */
class task
{
  public:
    explicit task(weir_task *raw) noexcept : raw_(raw)
    {
    }
    bool should_stop() const noexcept
    {
        return weir_task_should_stop(raw_);
    }
    const char *label() const noexcept
    {
        return weir_task_label(raw_);
    }
    const char *stage() const noexcept
    {
        return weir_task_stage(raw_);
    }
    std::uint64_t seq() const noexcept
    {
        return weir_task_seq(raw_);
    }
    std::uint64_t epoch() const noexcept
    {
        return weir_task_epoch(raw_);
    }
    std::uint32_t source() const noexcept
    {
        return weir_task_source(raw_);
    }
    weir_task *raw() const noexcept
    {
        return raw_;
    }

  private:
    weir_task *raw_;
};

/* ---- objects that live as long as the pipeline
   -------------------------------------------------------------------- */

/* Functions that observe a run; empty ones are not called. See weir_observer. */
struct observer {
    std::function<void(const weir_run_info &)> run_start;
    std::function<void(const weir_subject_lap &)> lap;
    std::function<void(const weir_lap &)> lap_end;
    std::function<void(const weir_failure &)> failure;
    std::function<void(const weir_event &)> event;
    std::function<void(const weir_run_end &)> run_end;
};

namespace detail
{

struct holder {
    virtual ~holder() = default;
};

template <typename T> struct held : holder {
    explicit held(T v) : value(std::move(v))
    {
    }
    T value;
};

/* Addresses in it stay valid until the pipeline has been freed. */
using keeper = std::list<std::unique_ptr<holder>>;

template <typename T> T *keep(keeper &all, T value)
{
    all.push_back(std::make_unique<held<T>>(std::move(value)));
    return &static_cast<held<T> *>(all.back().get())->value;
}

/* An operation made from a function: source functions take nothing or a task, stage functions an item and
   optionally a task. */
struct operation {
    std::string name, takes, makes;
    weir_op table = {};
    std::function<item(task)> make;
    std::function<item(item, task)> change;

    static int run_source(void *, weir_item *, weir_item *out, weir_task *raw) noexcept
    {
        try {
            item made = static_cast<const operation *>(weir_task_config(raw))->make(task(raw));
            return made ? made.hand_on(out, raw) : static_cast<int>(WEIR_EOF);
        } catch (...) {
            return fail_task(raw);
        }
    }

    static int run_stage(void *, weir_item *in, weir_item *out, weir_task *raw) noexcept
    {
        try {
            item input;
            weir_item_keep(input.raw(), in);
            item made = static_cast<const operation *>(weir_task_config(raw))->change(std::move(input), task(raw));
            return made ? made.hand_on(out, raw) : static_cast<int>(WEIR_SKIP);
        } catch (...) {
            return fail_task(raw);
        }
    }

    void finish()
    {
        table.name = name.c_str();
        table.takes = takes.empty() ? nullptr : takes.c_str();
        table.makes = makes.empty() ? WEIR_TYPE_ANY : makes.c_str();
        table.run = make ? run_source : run_stage;
    }
};

struct task_hook {
    std::function<void(task, const weir_item &)> begin;
    std::function<void(task, const weir_task_end &)> end;

    static int on_begin(void *self, void *, weir_task *raw, const weir_item *in) noexcept
    {
        try {
            static_cast<task_hook *>(self)->begin(task(raw), *in);
            return WEIR_OK;
        } catch (...) {
            return fail_task(raw);
        }
    }

    static int on_end(void *self, void *, weir_task *raw, const weir_task_end *end) noexcept
    {
        try {
            static_cast<task_hook *>(self)->end(task(raw), *end);
            return WEIR_OK;
        } catch (...) {
            if (end->status < 0) /* it has set its own reason */
                return WEIR_EEXCEPTION;
            return fail_task(raw);
        }
    }

    weir_task_hook table() noexcept
    {
        weir_task_hook made = {};
        made.self = this;
        made.begin = begin ? on_begin : nullptr;
        made.end = end ? on_end : nullptr;
        return made;
    }
};

struct stage_hook {
    std::function<void(const char *)> start, end;

    static int call(const std::function<void(const char *)> &function, const char *stage, weir_error *why) noexcept
    {
        try {
            function(stage);
            return WEIR_OK;
        } catch (...) {
            return tell_exception([why](int status, int code, const char *text) {
                return weir_error_set(why, status, code, "%s", text);
            });
        }
    }

    weir_stage_hook table() noexcept
    {
        weir_stage_hook made = {};
        made.self = this;
        if (start)
            made.start = [](void *self, const char *stage, weir_error *why) {
                return call(static_cast<stage_hook *>(self)->start, stage, why);
            };
        if (end)
            made.end = [](void *self, const char *stage, weir_error *why) {
                return call(static_cast<stage_hook *>(self)->end, stage, why);
            };
        return made;
    }
};

template <typename Told> void tell(const std::function<void(const Told &)> &function, const Told *told) noexcept
{
    try {
        function(*told);
    } catch (...) {
        tell_exception([](int, int, const char *text) {
            weir_log(WEIR_LOG_ERROR, "an observer threw an exception: %s", text);
            return 0;
        });
    }
}

inline weir_observer table_of(observer *kept) noexcept
{
    weir_observer made = {};
    made.self = kept;
#define WEIR_HPP_TELL(function, type) \
    if (kept->function) \
        made.function = [](void *self, const type *told) { tell(static_cast<observer *>(self)->function, told); };
    WEIR_HPP_TELL(run_start, weir_run_info)
    WEIR_HPP_TELL(lap, weir_subject_lap)
    WEIR_HPP_TELL(lap_end, weir_lap)
    WEIR_HPP_TELL(failure, weir_failure)
    WEIR_HPP_TELL(event, weir_event)
    WEIR_HPP_TELL(run_end, weir_run_end)
#undef WEIR_HPP_TELL
    return made;
}

} // namespace detail

/* ---- options ---------------------------------------------------------------------------------------------------- */

/* weir_stage_options with chainable setters. */
class stage_options
{
  public:
    stage_options &name(std::string text)
    {
        return name_ = std::move(text), *this;
    }
    stage_options &concurrency(std::uint32_t slots)
    {
        return raw.concurrency = slots, *this;
    }
    stage_options &queue_items(std::uint32_t items)
    {
        return raw.queue_items = items, *this;
    }
    stage_options &queue_bytes(std::uint64_t bytes)
    {
        return raw.queue_bytes = bytes, *this;
    }
    stage_options &threads(std::uint32_t threads)
    {
        return raw.threads = threads, *this;
    }
    stage_options &output_order(weir_order order)
    {
        return raw.output_order = order, *this;
    }
    stage_options &epochs(std::uint32_t epochs)
    {
        return raw.epochs = epochs, *this;
    }
    stage_options &takes(std::string types)
    {
        return takes_ = std::move(types), *this;
    }
    stage_options &makes(std::string types)
    {
        return makes_ = std::move(types), *this;
    }

    stage_options &task_deadline(std::chrono::nanoseconds span)
    {
        return raw.task_deadline_ns = span.count(), *this;
    }

    stage_options &max_failures(std::int64_t count)
    {
        raw.max_failures.kind = WEIR_FAILURES_COUNT;
        raw.max_failures.count = count;
        return *this;
    }

    stage_options &task_hook(std::function<void(task, const weir_item &)> begin,
                             std::function<void(task, const weir_task_end &)> end)
    {
        task_hooks_.push_back({ std::move(begin), std::move(end) });
        return *this;
    }

    stage_options &stage_hook(std::function<void(const char *)> start, std::function<void(const char *)> end)
    {
        stage_hooks_.push_back({ std::move(start), std::move(end) });
        return *this;
    }

    weir_stage_options raw = {}; /* for options without a setter */

  private:
    friend class builder;
    std::string name_, takes_, makes_;
    std::vector<detail::task_hook> task_hooks_;
    std::vector<detail::stage_hook> stage_hooks_;
};

/* weir_pipeline_options with chainable setters. */
class pipeline_options
{
  public:
    pipeline_options &threads(std::uint32_t threads)
    {
        return raw.threads = threads, *this;
    }
    pipeline_options &id(std::uint32_t id)
    {
        return raw.id = id, *this;
    }
    pipeline_options &stats_interval(std::chrono::nanoseconds span)
    {
        return raw.stats_interval_ns = span.count(), *this;
    }

    pipeline_options &observe(weir::observer functions)
    {
        return observers_.push_back(std::move(functions)), *this;
    }

    /* Adds a C observer, such as weir_console_observer(). */
    pipeline_options &observe(const weir_observer &table)
    {
        return tables_.push_back(table), *this;
    }

    weir_pipeline_options raw = {};

  private:
    friend class builder;
    std::vector<weir::observer> observers_;
    std::vector<weir_observer> tables_;
};

/* ---- the pipeline ------------------------------------------------------------------------------------------------ */

class pipeline
{
  public:
    pipeline(pipeline &&) noexcept = default;

    pipeline &operator=(pipeline &&other) noexcept
    {
        raw_ = std::move(other.raw_); /* freed before the objects that its functions use */
        keeper_ = std::move(other.keeper_);
        return *this;
    }

    /* Gets the next item. WEIR_OK (`next` is set), WEIR_EPOCH, WEIR_EOF, WEIR_ETIMEDOUT or WEIR_ESTOPPED; throws
       if the pipeline has failed. A negative timeout waits without limit. */
    int next(item &next, std::chrono::nanoseconds timeout = std::chrono::nanoseconds(-1))
    {
        weir_item got = {};
        int status = weir_pipeline_next(raw(), &got, timeout.count() < 0 ? WEIR_FOREVER : timeout.count());
        if (status == WEIR_OK)
            next = item::adopt(&got);
        else if (status < 0 && status != WEIR_ETIMEDOUT && status != WEIR_ESTOPPED)
            throw_failure(status);
        return status;
    }

    void stop() noexcept
    {
        weir_pipeline_stop(raw());
    }
    void stop_on_signals()
    {
        detail::check(weir_pipeline_stop_on_signals(raw()));
    }

    int poll_fd()
    {
        int fd = -1;
        detail::check(weir_pipeline_poll_fd(raw(), &fd));
        return fd;
    }

    /* stage: nullptr = the whole pipeline */
    weir_account account(const char *stage = nullptr)
    {
        weir_account account;
        detail::check(weir_pipeline_account(raw(), stage, &account));
        return account;
    }

    /* The first failure of a stage, if any. */
    std::optional<error> stage_error(const char *stage)
    {
        weir_error why = {};
        int status = weir_pipeline_stage_error(raw(), stage, &why);
        if (status == WEIR_OK)
            return std::nullopt;
        if (!why.stage[0])
            detail::check(status, &why); /* no stage of that name */
        return error(why);
    }

    weir_pipeline *raw() const noexcept
    {
        return raw_.get();
    }

    /* for (weir::item &item : pipeline): iterates until the end or a stop, across the ends of epochs; throws if
       the pipeline fails. An item is valid until the next one, unless it is moved out. */
    class iterator
    {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = item;
        using difference_type = std::ptrdiff_t;
        using pointer = item *;
        using reference = item &;

        iterator() = default;
        explicit iterator(pipeline *from) : from_(from)
        {
            ++*this;
        }
        item &operator*() noexcept
        {
            return current_;
        }
        item *operator->() noexcept
        {
            return &current_;
        }

        iterator &operator++()
        {
            int status;
            do
                status = from_->next(current_);
            while (status == WEIR_EPOCH);
            if (status != WEIR_OK)
                from_ = nullptr;
            return *this;
        }

        bool operator==(const iterator &other) const noexcept
        {
            return from_ == other.from_;
        }
        bool operator!=(const iterator &other) const noexcept
        {
            return from_ != other.from_;
        }

      private:
        pipeline *from_ = nullptr;
        item current_;
    };

    iterator begin()
    {
        return iterator(this);
    }
    iterator end()
    {
        return {};
    }

  private:
    friend class builder;

    struct free_pipeline {
        void operator()(weir_pipeline *raw) const noexcept
        {
            weir_pipeline_free(raw);
        }
    };

    pipeline(weir_pipeline *raw, detail::keeper kept) : keeper_(std::move(kept)), raw_(raw)
    {
    }

    [[noreturn]] void throw_failure(int status)
    {
        weir_error why = {};
        weir_pipeline_error(raw(), &why);
        detail::check(status, &why);
        std::terminate(); /* check() has thrown */
    }

    detail::keeper keeper_; /* freed after the pipeline */
    std::unique_ptr<weir_pipeline, free_pipeline> raw_;
};

/* See weir_builder. build() throws the first error and leaves the builder empty. */
class builder
{
  public:
    builder() : raw_(weir_builder_new())
    {
    }

    /* A function without arguments, or with a task, that returns the next item, or an empty one at the end. With
       epochs it is then called again. */
    template <typename Function> builder &source(std::string name, Function function, stage_options options = {})
    {
        detail::operation *op = new_operation(std::move(name), options);
        auto shared = std::make_shared<Function>(std::move(function));
        if constexpr (std::is_invocable_v<Function &, task>)
            op->make = [shared](task t) { return (*shared)(t); };
        else
            op->make = [shared](task) { return (*shared)(); };
        op->finish();
        if (options.name_.empty())
            options.name_ = op->name;
        weir_builder_source(raw_.get(), &op->table, op, 0, convert(options));
        return *this;
    }

    /* A function of an item, or of an item and a task, that returns the result, or an empty item to skip the
       input. */
    template <typename Function> builder &pipe(std::string name, Function function, stage_options options = {})
    {
        detail::operation *op = new_operation(std::move(name), options);
        auto shared = std::make_shared<Function>(std::move(function));
        if constexpr (std::is_invocable_v<Function &, item, task>)
            op->change = [shared](item in, task t) { return (*shared)(std::move(in), t); };
        else
            op->change = [shared](item in, task) { return (*shared)(std::move(in)); };
        op->finish();
        weir_builder_pipe(raw_.get(), &op->table, op, 0, convert(options));
        return *this;
    }

    /* Operations of the library and others written in C. */
    template <typename Config> builder &source(const weir_op &op, const Config &config, stage_options options = {})
    {
        weir_builder_source(raw_.get(), &op, &config, sizeof config, convert(options));
        return *this;
    }

    template <typename Config> builder &pipe(const weir_op &op, const Config &config, stage_options options = {})
    {
        weir_builder_pipe(raw_.get(), &op, &config, sizeof config, convert(options));
        return *this;
    }

    builder &pipe(const weir_op &op)
    {
        weir_builder_pipe(raw_.get(), &op, nullptr, 0, nullptr);
        return *this;
    }

    builder &merge(stage_options options = {})
    {
        weir_builder_merge(raw_.get(), nullptr, convert(options));
        return *this;
    }

    builder &sink(stage_options options = {})
    {
        weir_builder_sink(raw_.get(), convert(options));
        return *this;
    }

    weir_builder *raw() const noexcept
    {
        return raw_.get();
    }

    pipeline build(pipeline_options options = {})
    {
        weir_pipeline *built = nullptr;
        weir_error why = {};
        std::vector<weir_observer> observers = std::move(options.tables_);
        for (weir::observer &functions : options.observers_)
            observers.push_back(detail::table_of(detail::keep(keeper_, std::move(functions))));
        if (!observers.empty()) {
            options.raw.observers = observers.data();
            options.raw.num_observers = observers.size();
        }
        detail::check(weir_builder_build(raw_.release(), &options.raw, &built, &why), &why);
        return pipeline(built, std::move(keeper_));
    }

  private:
    struct free_builder {
        void operator()(weir_builder *raw) const noexcept
        {
            weir_builder_free(raw);
        }
    };

    detail::operation *new_operation(std::string name, stage_options &options)
    {
        detail::operation *op = detail::keep(keeper_, detail::operation());
        op->name = std::move(name);
        op->takes = std::move(options.takes_);
        op->makes = std::move(options.makes_);
        return op;
    }

    /* Valid until `options` is gone; the C function copies it. */
    const weir_stage_options *convert(stage_options &options)
    {
        if (!options.name_.empty())
            options.raw.name = options.name_.c_str();
        task_hooks_.clear();
        for (detail::task_hook &hook : options.task_hooks_)
            task_hooks_.push_back(detail::keep(keeper_, std::move(hook))->table());
        stage_hooks_.clear();
        for (detail::stage_hook &hook : options.stage_hooks_)
            stage_hooks_.push_back(detail::keep(keeper_, std::move(hook))->table());
        if (!task_hooks_.empty()) {
            options.raw.task_hooks = task_hooks_.data();
            options.raw.num_task_hooks = task_hooks_.size();
        }
        if (!stage_hooks_.empty()) {
            options.raw.stage_hooks = stage_hooks_.data();
            options.raw.num_stage_hooks = stage_hooks_.size();
        }
        return &options.raw;
    }

    detail::keeper keeper_;
    std::vector<weir_task_hook> task_hooks_; /* of the stage that is being added */
    std::vector<weir_stage_hook> stage_hooks_;
    std::unique_ptr<weir_builder, free_builder> raw_;
};

} // namespace weir

#endif
