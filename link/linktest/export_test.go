package linktest

// Leaked is what the leak checker finds at this moment.
var Leaked = leaked
