package token

import "time"

// Reread makes the keyring read its files at each use.
func (k *Keyring) Reread() {
	at := time.Now()
	k.watched.Now = func() time.Time {
		at = at.Add(time.Second)
		return at
	}
}
