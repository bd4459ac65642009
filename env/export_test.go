package env

// For the tests that look at package policy, which imports this one.
var CageSettings = cageSettings[:]

func CageSetting(name string) bool { return cageSetting(name) }
