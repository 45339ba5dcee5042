// Package imports holds the test that keeps the arrows between the packages pointing one way: a pure engine at the
// bottom, Temporal above it, the package that users import above that, commands on top. It has no code of its own.
package imports
