// The same as in C, with lambdas: numbers come from a source, four slots look for their largest prime factor, and the
// results come in the order of the numbers. A number that cannot be factored fails alone.
#include <cstdint>
#include <iostream>
#include <stdexcept>

#include <weir/weir.hpp>

static std::uint64_t largest_factor(std::uint64_t number)
{
    if (number < 2)
        throw std::domain_error(std::to_string(number) + " has no prime factor");
    for (std::uint64_t factor = 2; factor * factor <= number; factor++)
        while (number % factor == 0 && number > factor)
            number /= factor;
    return number;
}

int main()
{
    weir_standard_files_open();
    try {
        weir::stage_options four;
        four.concurrency = 4;
        four.output_order = WEIR_ORDER_INPUT;

        weir::builder builder;
        builder.source("numbers", [n = std::uint64_t(0)]() mutable {
            if (n == 1000)
                return weir::item();
            std::string label = "number " + std::to_string(n);
            return weir::item::of(n++).labelled(label);
        });
        builder.pipe(
            "factor", [](weir::item in) { return weir::item::of(largest_factor(in.get<std::uint64_t>())); }, four);
        builder.sink();

        weir::pipeline pipeline = builder.build();
        weir_pipeline_stop_on_signals(pipeline.raw());
        for (weir::item &item : pipeline)
            std::cout << item.label << ": " << item.get<std::uint64_t>() << '\n';
        std::cout << pipeline.account("factor").failed << " failed\n";
    } catch (const weir::error &e) {
        std::cerr << "pipeline: " << e.what() << '\n';
        return 1;
    }
}
