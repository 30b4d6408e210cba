/*
 * weir for C++17: the same pipelines, with destructors, lambdas and exceptions. Header only, over the C functions; what
 * has no class here is called with raw().
 *
 *     weir::stage_options four;
 *     four.concurrency = 4;
 *     weir::builder b;
 *     b.source("numbers", [n = 0]() mutable { return n < 100 ? weir::item::of(n++) : weir::item(); });
 *     b.pipe("square", [](weir::item in) { return weir::item::of(in.get<int>() * in.get<int>()); }, four);
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

#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
#include <utility>
#include <vector>

#include <weir/engine.h>

namespace weir
{

/* ---- errors ----------------------------------------------------------------------------------------------------- */

/* what() is the line made by weir_error_format(). If an operation throws it, the task fails with exactly this
   error. */
struct error : std::runtime_error {
    explicit error(const weir_error &e) : std::runtime_error(line_of(e)), why(e)
    {
    }

    error(int status, const std::string &message, int library_code = 0) : error(made(status, library_code, message))
    {
    }

    weir_error why;

  private:
    static std::string line_of(const weir_error &e)
    {
        char line[WEIR_ERROR_LINE];
        weir_error_format(&e, line, sizeof line);
        return line;
    }

    static weir_error made(int status, int library_code, const std::string &message)
    {
        weir_error e = {};
        weir_error_set(&e, status, library_code, "%s", message.c_str());
        return e;
    }
};

namespace detail
{

/* Not every function sets *why; the status text is then the message. */
inline void check(int status, const weir_error *why = nullptr)
{
    if (status != WEIR_OK)
        throw why && why->status ? error(*why) : error(status, weir_status_text(status));
}

/* Inside a catch block: gives the current exception to `fail` as a status, a code and a text. */
template <typename Fail> int describe_exception(Fail fail) noexcept
{
    try {
        throw;
    } catch (const error &e) {
        return fail(e.why.status < 0 ? e.why.status : static_cast<int>(WEIR_EEXCEPTION), e.why.library_code,
                    e.why.message);
    } catch (const std::bad_alloc &e) {
        return fail(WEIR_ENOMEM, 0, e.what());
    } catch (const std::system_error &e) {
        return fail(WEIR_ESYSTEM, e.code().value(), e.what());
    } catch (const std::exception &e) {
        return fail(WEIR_EEXCEPTION, 0, e.what());
    } catch (...) {
        return fail(WEIR_EEXCEPTION, 0, "an exception that is not a std::exception");
    }
}

} // namespace detail

/* ---- items ------------------------------------------------------------------------------------------------------ */

/* A weir_item that owns its data. Can be moved, not copied. May be empty. */
struct item : weir_item {
    item() noexcept : weir_item()
    {
    }

    item(item &&other) noexcept : weir_item(other), own_label(std::move(other.own_label))
    {
        static_cast<weir_item &>(other) = weir_item();
    }

    item &operator=(item &&other) noexcept
    {
        std::swap(static_cast<weir_item &>(*this), static_cast<weir_item &>(other));
        own_label.swap(other.own_label);
        return *this;
    }

    ~item()
    {
        weir_item_release(this);
    }

    /* Makes an item that holds a C++ value. It has no declared type; see stage_options::makes. */
    template <typename T> static item of(T value, std::size_t size_bytes = 0)
    {
        item made;
        made.data = new T(std::move(value));
        made.size_bytes = size_bytes;
        made.release = [](void *data, void *) { delete static_cast<T *>(data); };
        return made;
    }

    /* Sets the label of the item that the operation returns. */
    item &&labelled(std::string text) &&
    {
        own_label = std::move(text);
        return std::move(*this);
    }

    explicit operator bool() const noexcept
    {
        return data != nullptr;
    }

    /* The data as a T. Not checked: only `type` says what it is. */
    template <typename T> T &get() const noexcept
    {
        return *static_cast<T *>(data);
    }

    std::optional<std::string> own_label; /* of labelled() */
};

/* ---- options ---------------------------------------------------------------------------------------------------- */

struct stage_options : weir_stage_options {
    stage_options() : weir_stage_options()
    {
    }

    std::string takes, makes; /* as in weir_op; for stages made of functions */
};

/* Functions that observe a run; empty ones are not called. See weir_observer. */
struct observer {
    std::function<void(const weir_run_info &)> run_start;
    std::function<void(const weir_subject_lap &)> lap;
    std::function<void(const weir_lap &)> lap_end;
    std::function<void(const weir_failure &)> failure;
    std::function<void(const weir_event &)> event;
    std::function<void(const weir_run_end &)> run_end;
    std::function<void(const weir_mark &)> mark; /* on the thread that marks */
};

struct pipeline_options : weir_pipeline_options {
    pipeline_options() : weir_pipeline_options()
    {
    }

    std::vector<observer> lambdas;        /* after the C observers */
    std::vector<std::string> resume_from; /* texts of checkpoints, after those of `resume` */
};

/* What load_checkpoint() has read. */
struct checkpoint {
    std::string text; /* for pipeline_options::resume_from */
    std::string state;
};

/* A file of pipeline::store_checkpoint(); nothing if there is none. Throws if it cannot be read or is damaged. */
inline std::optional<checkpoint> load_checkpoint(const std::string &path)
{
    char *text;
    void *state;
    std::size_t num_bytes;
    weir_error why = {};
    int status = weir_checkpoint_load(path.c_str(), &text, &state, &num_bytes, &why);
    if (status == WEIR_ENOTFOUND)
        return std::nullopt;
    if (status != WEIR_OK)
        throw error(why);
    std::unique_ptr<char, decltype(&std::free)> texts(text, std::free);
    std::unique_ptr<void, decltype(&std::free)> states(state, std::free);
    return checkpoint{ text, std::string(static_cast<const char *>(state), num_bytes) };
}

/* ---- functions that live as long as the pipeline ---------------------------------------------------------------- */

namespace detail
{

/* An operation made from a function. */
struct operation {
    std::string name, takes, makes;
    std::function<item(item, weir_task *)> call;
    weir_op table = {};

    template <bool is_source> static int run(void *, weir_item *in, weir_item *out, weir_task *task) noexcept
    {
        try {
            item input;
            if (!is_source)
                weir_item_keep(&input, in);
            item made = static_cast<const operation *>(weir_task_config(task))->call(std::move(input), task);
            if (!made)
                return is_source ? static_cast<int>(WEIR_EOF) : static_cast<int>(WEIR_SKIP);
            if (made.own_label && weir_task_set_label(task, made.own_label->c_str()) != WEIR_OK)
                return WEIR_ENOMEM;
            weir_item_move(out, &made);
            return WEIR_OK;
        } catch (...) {
            return describe_exception([task](int status, int code, const char *text) {
                return weir_task_fail(task, status, code, "%s", text);
            });
        }
    }
};

template <typename Told> void tell(const std::function<void(const Told &)> &function, const Told *told) noexcept
{
    try {
        function(*told);
    } catch (...) {
        describe_exception([](int, int, const char *text) {
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
    WEIR_HPP_TELL(mark, weir_mark)
#undef WEIR_HPP_TELL
    return made;
}

struct kept_functions { /* lists: their elements stay where they are */
    std::list<operation> operations;
    std::list<observer> observers;
};

struct free_builder {
    void operator()(weir_builder *builder) const noexcept
    {
        weir_builder_free(builder);
    }
};

struct free_pipeline {
    std::unique_ptr<kept_functions> kept; /* freed after the pipeline */

    void operator()(weir_pipeline *pipeline) const noexcept
    {
        weir_pipeline_free(pipeline);
    }
};

} // namespace detail

/* ---- the pipeline ------------------------------------------------------------------------------------------------ */

class pipeline
{
  public:
    /* Gets the next item. WEIR_OK (`next` is set), WEIR_EPOCH, WEIR_EOF, WEIR_ETIMEDOUT or WEIR_ESTOPPED; throws
       if the pipeline has failed. */
    int next(item &next, std::int64_t timeout_ns = WEIR_FOREVER)
    {
        next = item();
        int status = weir_pipeline_next(raw(), &next, timeout_ns);
        weir_error why = {};
        if (status < 0 && status != WEIR_ETIMEDOUT && status != WEIR_ESTOPPED) {
            weir_pipeline_error(raw(), nullptr, &why);
            detail::check(status, &why);
        }
        return status;
    }

    /* Where the consumer is, see weir_pipeline_mark_step(). */
    void mark_step(std::int64_t step)
    {
        detail::check(weir_pipeline_mark_step(raw(), step));
    }

    void mark_phase(const char *phase)
    {
        detail::check(weir_pipeline_mark_phase(raw(), phase));
    }

    void mark_mode(const char *mode)
    {
        detail::check(weir_pipeline_mark_mode(raw(), mode));
    }

    /* See weir_pipeline_checkpoint(); the options need `checkpoints`. */
    std::string checkpoint_text()
    {
        char *text;
        detail::check(weir_pipeline_checkpoint(raw(), &text));
        std::unique_ptr<char, decltype(&std::free)> kept(text, std::free);
        return text;
    }

    /* See weir_checkpoint_store(). */
    void store_checkpoint(const std::string &path, const std::string &state = {})
    {
        weir_error why = {};
        detail::check(weir_checkpoint_store(raw(), path.c_str(), state.data(), state.size(), &why), &why);
    }

    /* With WEIR_CHECKPOINTS_DONE: the item has been handled. */
    void mark_done(item &item)
    {
        detail::check(weir_item_done(raw(), &item));
    }

    /* stage: nullptr = the whole pipeline */
    weir_account account(const char *stage = nullptr)
    {
        weir_account account;
        detail::check(weir_pipeline_account(raw(), stage, &account));
        return account;
    }

    weir_pipeline *raw() const noexcept
    {
        return raw_.get();
    }

    /* for (weir::item &item : pipeline): iterates until the end or a stop, across the ends of epochs; throws if
       the pipeline fails. An item is valid until the next one, unless it is moved out. */
    struct iterator {
        using iterator_category = std::input_iterator_tag;
        using value_type = item;
        using difference_type = std::ptrdiff_t;
        using pointer = item *;
        using reference = item &;

        item &operator*() noexcept
        {
            return current;
        }

        iterator &operator++()
        {
            int status;
            do
                status = from->next(current);
            while (status == WEIR_EPOCH);
            from = status == WEIR_OK ? from : nullptr;
            return *this;
        }

        bool operator!=(const iterator &other) const noexcept
        {
            return from != other.from;
        }

        weir::pipeline *from;
        item current;
    };

    iterator begin()
    {
        iterator first{ this, item() };
        return std::move(++first);
    }

    iterator end()
    {
        return { nullptr, item() };
    }

  private:
    friend class builder;

    std::unique_ptr<weir_pipeline, detail::free_pipeline> raw_;
};

/* See weir_builder. build() throws the first error and leaves the builder empty. */
class builder
{
  public:
    /* A function without arguments, or with a weir_task *, that returns the next item, or an empty one at the end. With
       epochs it is then called again. */
    template <typename Function>
    builder &source(const std::string &name, Function function, stage_options options = {})
    {
        auto shared = std::make_shared<Function>(std::move(function));
        detail::operation &op = keep(name, options, [shared](item, weir_task *task) {
            if constexpr (std::is_invocable_v<Function &, weir_task *>)
                return (*shared)(task);
            else
                return (void)task, (*shared)();
        });
        op.table.run = detail::operation::run<true>;
        options.name = options.name ? options.name : op.name.c_str();
        weir_builder_source(raw(), &op.table, &op, 0, &options);
        return *this;
    }

    /* A function of an item, or of an item and a weir_task *, that returns the result, or an empty item to skip the
       input. */
    template <typename Function> builder &pipe(const std::string &name, Function function, stage_options options = {})
    {
        auto shared = std::make_shared<Function>(std::move(function));
        detail::operation &op = keep(name, options, [shared](item in, weir_task *task) {
            if constexpr (std::is_invocable_v<Function &, item, weir_task *>)
                return (*shared)(std::move(in), task);
            else
                return (void)task, (*shared)(std::move(in));
        });
        op.table.run = detail::operation::run<false>;
        weir_builder_pipe(raw(), &op.table, &op, 0, &options);
        return *this;
    }

    builder &sink(stage_options options = {})
    {
        weir_builder_sink(raw(), &options);
        return *this;
    }

    /* For the C functions: weir_pipe_video(builder.raw(), &config, &options). */
    weir_builder *raw() const noexcept
    {
        return raw_.get();
    }

    pipeline build(pipeline_options options = {})
    {
        std::vector<weir_observer> observers(options.observers, options.observers + options.num_observers);
        for (observer &functions : options.lambdas)
            observers.push_back(detail::table_of(&kept_->observers.emplace_back(std::move(functions))));
        options.observers = observers.data();
        options.num_observers = observers.size();
        std::vector<const char *> texts(options.resume, options.resume + options.num_resume);
        for (const std::string &text : options.resume_from)
            texts.push_back(text.c_str());
        options.resume = texts.data();
        options.num_resume = texts.size();
        weir_pipeline *built = nullptr;
        weir_error why = {};
        detail::check(weir_builder_build(raw_.release(), &options, &built, &why), &why);
        pipeline made;
        made.raw_ = { built, { std::move(kept_) } };
        return made;
    }

  private:
    detail::operation &keep(std::string name, const stage_options &options,
                            std::function<item(item, weir_task *)> call)
    {
        detail::operation &op = kept_->operations.emplace_back();
        op.name = std::move(name);
        op.takes = options.takes;
        op.makes = options.makes.empty() ? WEIR_TYPE_ANY : options.makes;
        op.call = std::move(call);
        op.table.name = op.name.c_str();
        op.table.takes = op.takes.empty() ? nullptr : op.takes.c_str();
        op.table.makes = op.makes.c_str();
        return op;
    }

    std::unique_ptr<detail::kept_functions> kept_ = std::make_unique<detail::kept_functions>();
    std::unique_ptr<weir_builder, detail::free_builder> raw_{ weir_builder_new() };
};

} // namespace weir

#endif
