// The .NET host: plays the cases it gets from the runner and reports what it saw.
// It judges nothing. See ../../README.md for the steps.
using Conformance;

while (await Desk.NextAsync() is { } order)
{
    await Desk.ReportAsync(await new Player(order).PlayAsync());
}

Environment.Exit(0); // parked handlers wait for ever
