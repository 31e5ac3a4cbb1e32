package filelog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/transom-run/transom/eventlog"
)

// Repaired is what became of a log that was to be mended.
type Repaired struct {
	// Damage is what the log held besides records, in order.
	Damage []eventlog.Damage
	// Records and Bytes are what the mended log holds.
	Records int
	Bytes   int64
	// Kept is the file that the log as it was has become; "": it is one record a line,
	// and was left alone.
	Kept string
}

// Copy writes the records of a stored log to w, one a line, and nothing else that
// the log holds. The session may be in use: what is there at the call is copied.
func (s *Store) Copy(ctx context.Context, id string, w io.Writer) (Repaired, error) {
	log, tail, err := s.Open(ctx, id)
	if err != nil {
		return Repaired{}, err
	}
	defer log.Close()
	var r Repaired
	out := bufio.NewWriterSize(w, block)
	for rec, err := range log.Read(0) {
		var damage *eventlog.DamageError
		switch {
		case ctx.Err() != nil:
			return r, ctx.Err()
		case errors.As(err, &damage):
			r.Damage = append(r.Damage, damage.Damage)
			continue
		case err != nil:
			return r, err
		}
		_, _ = out.Write(rec.Line) // an error stays until Flush
		_ = out.WriteByte('\n')
		r.Records, r.Bytes = r.Records+1, r.Bytes+int64(len(rec.Line))+1
	}
	r.Damage = append(r.Damage, tail...)
	return r, out.Flush()
}

// Repair puts a log that holds nothing but its records in the place of one that
// holds more, and keeps the old one beside it under another name. Nobody may have
// the session loaded meanwhile: a *eventlog.HeldError, or [eventlog.ErrInUse]. At
// every moment one of the two is in place, whole. A log of which nothing can be
// read is left alone.
func (s *Store) Repair(ctx context.Context, id string) (Repaired, error) {
	if err := check(ctx, id); err != nil {
		return Repaired{}, err
	}
	if _, err := s.Stat(ctx, id); err != nil {
		return Repaired{}, err
	}
	hold, err := s.Hold(id)
	if err != nil {
		return Repaired{}, err
	}
	defer hold.Release()
	if err := hold.TakePen(); err != nil {
		return Repaired{}, err
	}
	if others, err := hold.Others(); err != nil {
		return Repaired{}, err
	} else if others {
		return Repaired{}, s.wrap("mend the log of", id, eventlog.ErrInUse)
	}
	r, err := s.repair(ctx, s.log(id))
	if err != nil {
		return r, s.wrap("mend the log of", id, err)
	}
	return r, nil
}

func (s *Store) repair(ctx context.Context, l *Log) (Repaired, error) {
	tmp := l.path + ".mended"
	f, err := s.fs.open(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return Repaired{}, err
	}
	r, err := s.Copy(ctx, l.id, f)
	if err == nil && r.Records == 0 {
		err = errors.New("it holds no record that can be read")
	}
	bad := false
	if err == nil {
		var fi fs.FileInfo
		if fi, err = s.fs.stat(l.path); err == nil {
			bad = len(r.Damage) > 0 || fi.Size() != r.Bytes // such as two records on a line
		}
	}
	if err == nil && bad {
		err = f.syncData()
	}
	err = errors.Join(err, f.Close())
	if err == nil && bad {
		if r.Kept, err = s.keep(l.path); err == nil {
			err = s.fs.rename(tmp, l.path)
		}
		if err == nil {
			// What was derived from the old log would be known as such; it is of no use.
			_ = s.fs.remove(filepath.Join(l.dir, checkpointName))
			return r, s.fs.syncDir(l.dir)
		}
	}
	_ = s.fs.remove(tmp)
	return r, err
}

// keep gives a file a second name, and returns that.
func (s *Store) keep(path string) (string, error) {
	stamp := path + "." + time.Now().UTC().Format("20060102T150405Z") + ".damaged"
	for n := 1; ; n++ {
		kept := stamp
		if n > 1 {
			kept = fmt.Sprintf("%s.%d", stamp, n)
		}
		if err := s.fs.link(path, kept); !errors.Is(err, fs.ErrExist) {
			return kept, err
		}
	}
}
